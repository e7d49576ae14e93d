import { check, equal, equalBytes, includes, refuses } from "../assert.js";
import { noise, sha256, utf8 } from "../bytes.js";
import { finishes, pause, script, scriptArgv, until } from "../script.js";
import type { ConformanceCase } from "../types.js";

const MIB = 1024 * 1024;
/** Room for the marker between head and tail. */
const MARKER = 256;

export const execOutputCases: readonly ConformanceCase[] = [
  {
    id: "exec.output.separate",
    title: "two streams",
    requirement: "Standard output and standard error are kept apart.",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: scriptArgv("for i in 1 2 3; do echo out$i; echo err$i >&2; done") });
      equal([result.stdout, result.stderr], ["out1\nout2\nout3\n", "err1\nerr2\nerr3\n"], "stdout and stderr");
    },
  },
  {
    id: "exec.output.exact",
    title: "5 MiB of arbitrary bytes",
    requirement: "With `raw` the kept bytes are exactly those the command wrote, on both streams.",
    async run({ sandbox }) {
      const bytes = noise(5 * MIB, 21);
      await sandbox.writeFile("noise", bytes);
      const argv = scriptArgv("cat noise; cat noise >&2");
      const result = await finishes(sandbox, { argv, raw: true, maxOutput: 6 * MIB });
      equal(result.bytes, { stdout: bytes.length, stderr: bytes.length }, "bytes");
      equalBytes(result.raw?.stdout, bytes, "stdout");
      equalBytes(result.raw?.stderr, bytes, "stderr");
      const sum = await sandbox.exec({ argv: ["sha256sum", "noise"] });
      if (sum.exitCode === 0) equal(sum.stdout.slice(0, 64), sha256(bytes), "the checksum in the sandbox");
    },
  },
  {
    id: "exec.output.raw-only-on-request",
    title: "no raw bytes by default",
    requirement: "Without `raw` the result has no bytes.",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: ["echo", "x"] });
      equal(["raw" in result && result.raw !== undefined, result.stdout], [false, "x\n"], "raw and stdout");
    },
  },
  {
    id: "exec.output.utf8",
    title: "characters across chunks",
    requirement: "A multi-byte character is never broken, wherever the chunks of the stream end.",
    async run({ sandbox }) {
      const text = `a${"€".repeat(100_000)}b${"👩‍💻é日".repeat(20_000)}`;
      await sandbox.writeFile("text", text);
      const maxOutput = 2 * MIB;
      const result = await finishes(sandbox, { argv: scriptArgv("cat text; cat text >&2"), maxOutput });
      check(result.stdout === text, "stdout differs from the text that was written");
      check(result.stderr === text, "stderr differs from the text that was written");
      const slow = "printf '\\342'; sleep 0.2; printf '\\202'; sleep 0.2; printf '\\254'";
      equal((await finishes(sandbox, { argv: scriptArgv(slow) })).stdout, "€", "one character in three writes");
    },
  },
  {
    id: "exec.output.not-utf8",
    title: "bytes that are not UTF-8",
    requirement: "Bytes that are not UTF-8 show as U+FFFD in the text and are exact in `raw`.",
    async run({ sandbox }) {
      const bytes = Uint8Array.of(0x61, 0xff, 0xfe, 0x00, 0xc3, 0x28, 0x62);
      await sandbox.writeFile("bytes", bytes);
      const result = await sandbox.exec({ argv: ["cat", "bytes"], raw: true });
      equalBytes(result.raw?.stdout, bytes, "raw");
      equal(result.stdout, new TextDecoder().decode(bytes), "text");
    },
  },
  {
    id: "exec.output.cap",
    title: "output beyond the cap",
    requirement:
      "Beyond `maxOutput` the head and the tail are kept, that stream is marked as truncated, and all bytes are counted.",
    async run({ sandbox }) {
      const text = "i=100000; while [ $i -lt 120000 ]; do echo line-$i; i=$((i+1)); done; echo small >&2";
      const result = await finishes(sandbox, { argv: scriptArgv(text), maxOutput: 10_000, raw: true });
      equal(result.truncated, { stdout: true, stderr: false }, "truncated");
      equal(result.bytes, { stdout: 20_000 * 12, stderr: 6 }, "bytes");
      check(result.stdout.startsWith("line-100000\nline-100001\n"), `the head is lost: ${result.stdout.slice(0, 60)}`);
      check(result.stdout.endsWith("line-119998\nline-119999\n"), `the tail is lost: ${result.stdout.slice(-60)}`);
      const kept = result.stdout.length;
      check(kept > 5_000 && kept <= 10_000 + MARKER, `${kept} characters were kept of a cap of 10,000`);
      const raw = result.raw?.stdout.length ?? 0;
      check(raw > 5_000 && raw <= 10_000 + MARKER, `${raw} raw bytes were kept of a cap of 10,000`);
      equal(result.stderr, "small\n", "stderr");
    },
  },
  {
    id: "exec.output.cap-exact",
    title: "output of exactly the cap",
    requirement: "Output of exactly `maxOutput` bytes is complete and not marked as truncated; one byte more is.",
    async run({ sandbox }) {
      await sandbox.writeFile("text", "0123456789".repeat(100));
      const whole = await sandbox.exec({ argv: ["cat", "text"], maxOutput: 1_000 });
      equal(
        [whole.truncated.stdout, whole.stdout.length, whole.bytes.stdout],
        [false, 1_000, 1_000],
        "exactly the cap",
      );
      const cut = await sandbox.exec({ argv: ["cat", "text"], maxOutput: 999 });
      equal([cut.truncated.stdout, cut.bytes.stdout], [true, 1_000], "one byte more than the cap");
    },
  },
  {
    id: "exec.output.cap-utf8",
    title: "a cut between characters",
    requirement: "A cut never breaks a character.",
    async run({ sandbox }) {
      await sandbox.writeFile("text", "€".repeat(10_000));
      for (const maxOutput of [1_000, 1_001, 1_002, 1_003]) {
        const { stdout, truncated } = await sandbox.exec({ argv: ["cat", "text"], maxOutput });
        check(truncated.stdout, "the output was not cut");
        check(stdout.startsWith("€€") && stdout.endsWith("€€"), "head or tail is lost");
        check(!stdout.includes("\ufffd"), `a character is broken at a cap of ${maxOutput}`);
      }
    },
  },
  {
    id: "exec.output.cap-of-sandbox",
    title: "the sandbox's cap",
    requirement: "The sandbox's `maxOutput` is the default for its commands.",
    options: { maxOutput: 500 },
    async run({ sandbox }) {
      await sandbox.writeFile("text", "x".repeat(2_000));
      const { truncated, bytes } = await sandbox.exec({ argv: ["cat", "text"] });
      equal([truncated.stdout, bytes.stdout], [true, 2_000], "by the sandbox's cap");
      equal(
        (await sandbox.exec({ argv: ["cat", "text"], maxOutput: 2_000 })).truncated.stdout,
        false,
        "by its own cap",
      );
    },
  },
  {
    id: "exec.output.cap-default",
    title: "the default cap",
    requirement: "Without `maxOutput` 1 MiB of each stream is kept.",
    async run({ sandbox }) {
      const argv = scriptArgv('head -c "$1" /dev/zero; head -c "$2" /dev/zero >&2', `${MIB}`, `${MIB + 1}`);
      const result = await finishes(sandbox, { argv });
      equal(result.truncated, { stdout: false, stderr: true }, "truncated");
      equal(result.bytes, { stdout: MIB, stderr: MIB + 1 }, "bytes");
    },
  },
  {
    id: "exec.output.flood",
    title: "a flood",
    requirement: "192 MiB of output are read in bounded memory.",
    exclusive: true,
    async run({ sandbox }) {
      const start = process.memoryUsage.rss();
      let peak = start;
      let streamed = 0;
      // No time limit but the case's own: the kit does not measure speed.
      const result = await sandbox.exec({
        argv: ["dd", "if=/dev/zero", "bs=1048576", "count=192"],
        maxOutput: 65_536,
        onStdout: (chunk) => {
          streamed += chunk.length;
          if (streamed % MIB < chunk.length) peak = Math.max(peak, process.memoryUsage.rss());
        },
      });
      equal([result.exitCode, result.bytes.stdout, streamed], [0, 192 * MIB, 192 * MIB], "code, counted, streamed");
      check(result.truncated.stdout && result.stdout.length <= 65_536 + MARKER, "the output was not capped");
      check(peak - start < 128 * MIB, `the memory of this process grew by ${Math.round((peak - start) / MIB)} MiB`);
    },
  },
  {
    id: "exec.output.streaming",
    title: "streaming",
    requirement: "Output reaches `onStdout` and `onStderr` while the command still runs.",
    async run({ sandbox }) {
      const wait = (file: string) =>
        `i=0; until [ -e ${file} ]; do sleep 0.05 || exit 8; i=$((i+1)); [ $i -lt 400 ] || exit 9; done`;
      const heard: string[] = [];
      const answer = async (chunk: Uint8Array, file: string): Promise<void> => {
        heard.push(new TextDecoder().decode(chunk).trim());
        if (heard.length <= 2) await sandbox.writeFile(file, "");
      };
      const result = await finishes(sandbox, {
        argv: scriptArgv(`echo first; ${wait("one")}; echo second >&2; ${wait("two")}; echo third`),
        onStdout: (chunk) => answer(chunk, "one"),
        onStderr: (chunk) => answer(chunk, "two"),
      });
      equal(result.exitCode, 0, "exit code; 9 says that the output came only after the end");
      equal(heard, ["first", "second", "third"], "what was heard");
      equal([result.stdout, result.stderr], ["first\nthird\n", "second\n"], "the result has it too");
    },
  },
  {
    id: "exec.output.streamed-bytes",
    title: "streaming all bytes in order",
    requirement: "The chunks passed to `onStdout`, joined, are exactly what the command wrote, whatever the cap.",
    async run({ sandbox }) {
      const bytes = noise(3 * MIB, 22);
      await sandbox.writeFile("noise", bytes);
      const chunks: Uint8Array[] = [];
      const onStdout = (chunk: Uint8Array): void => void chunks.push(Uint8Array.from(chunk));
      const result = await finishes(sandbox, { argv: ["cat", "noise"], maxOutput: 100, onStdout });
      equalBytes(Buffer.concat(chunks), bytes, "the pieces");
      equal(result.truncated.stdout, true, "truncated");
    },
  },
  {
    id: "exec.output.back-pressure",
    title: "a slow reader",
    requirement: "A slow consumer makes the command wait; the command then continues to its end.",
    async run({ sandbox }) {
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const text =
        "i=0; while [ $i -lt 40 ]; do dd if=/dev/zero bs=1048576 count=1 2>/dev/null; printf x >> progress; i=$((i+1)); done";
      const call = finishes(sandbox, { argv: scriptArgv(text), onStdout: () => held });
      try {
        let last = -1;
        const written = await until("the writer comes to a stop", async () => {
          const before = last;
          await pause(700);
          last = (await sandbox.stat("progress"))?.size ?? 0;
          return last === before ? last : undefined;
        });
        check(written <= 24, `the command wrote ${written} MiB to a consumer that took one piece`);
      } finally {
        release();
        await call.catch(() => undefined);
      }
      const result = await call;
      equal([result.exitCode, result.bytes.stdout], [0, 40 * MIB], "exit code and bytes after the release");
      equal((await sandbox.stat("progress"))?.size, 40, "MiB written after the release");
    },
  },
  {
    id: "exec.output.back-pressure-others",
    title: "a slow reader and other calls",
    requirement: "A call whose output nobody reads does not block other calls or file operations.",
    async run({ sandbox }) {
      let release = (): void => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      let first = (): void => undefined;
      const started = new Promise<void>((resolve) => {
        first = resolve;
      });
      const stuck = finishes(sandbox, {
        argv: ["dd", "if=/dev/zero", "bs=1048576", "count=32"],
        onStdout: () => {
          first();
          return held;
        },
      });
      try {
        await Promise.race([started, stuck]);
        await pause(200);
        equal((await finishes(sandbox, { argv: ["echo", "free"] })).stdout, "free\n", "another command");
        await sandbox.writeFile("beside", "x");
        equal(await sandbox.readFile("beside"), "x", "a file");
      } finally {
        release();
        await stuck.catch(() => undefined);
      }
      equal((await stuck).bytes.stdout, 32 * MIB, "bytes of the blocked call");
    },
  },
  {
    id: "exec.output.invalid-cap",
    title: "invalid caps",
    requirement: "A `maxOutput` that is negative or not a number is `invalid_argument`.",
    async run({ sandbox }) {
      for (const maxOutput of [-1, Number.NaN, "1k" as unknown as number]) {
        const call = () => sandbox.exec({ argv: ["true"], maxOutput });
        const error = await refuses("invalid_argument", `maxOutput ${maxOutput}`, call);
        includes(error.message, "maxOutput", "the message names the option");
      }
    },
  },
  {
    id: "exec.output.closed-early",
    title: "a command that closes its output",
    requirement: "A call waits for a command that closes its output and keeps running.",
    async run({ sandbox }) {
      const argv = scriptArgv("echo last; exec >/dev/null 2>&1; sleep 0.5; : > finished; exit 5");
      const result = await finishes(sandbox, { argv });
      equal([result.exitCode, result.stdout], [5, "last\n"], "exit code and stdout");
      equal(await script(sandbox, "ls finished"), "finished\n", "what it did after");
      equalBytes(await sandbox.readBytes("finished"), utf8(""), "the file");
    },
  },
];
