import type { Capabilities } from "../../../contracts/types.js";
import { check, equal, equalBytes, refuses } from "../assert.js";
import { utf8 } from "../bytes.js";
import { TextReader } from "../output.js";
import { finishes, scriptArgv } from "../script.js";
import type { ConformanceCase, ConformanceContext } from "../types.js";

/** Room for the marker between head and tail. */
const MARKER = 256;
const BOTH = 'i=0; while [ $i -lt "$1" ]; do i=$((i+1)); echo out-$i; echo err-$i >&2; done';

function both(lines: number): string {
  return Array.from({ length: lines }, (_, i) => `out-${i + 1}\nerr-${i + 1}\n`).join("");
}

const onlyCombined: Pick<ConformanceCase, "needs" | "refused"> = {
  needs: ({ combinedOutput }: Capabilities) =>
    combinedOutput === true ? undefined : "capabilities.combinedOutput is not true",
  async refused({ sandbox }: ConformanceContext) {
    await refuses("unsupported", "combined output", () => sandbox.exec("true", [], { output: "combined" }));
  },
};

export const execCombinedCases: readonly ConformanceCase[] = [
  {
    id: "exec.combined.order",
    title: "both outputs in their order",
    requirement:
      'With `output: "combined"` all output is on stdout in the order in which it was written, and stderr is empty.',
    ...onlyCombined,
    async run({ sandbox }) {
      const result = await finishes(sandbox, { argv: scriptArgv(BOTH, "300"), output: "combined", raw: true });
      check(result.stdout === both(300), `stdout is not in order: ${JSON.stringify(result.stdout.slice(0, 80))}`);
      equal(result.stderr, "", "stderr");
      equal(result.bytes, { stdout: both(300).length, stderr: 0 }, "bytes");
      equalBytes(result.raw?.stdout, utf8(both(300)), "raw stdout");
      equal(result.raw?.stderr.length, 0, "bytes of raw stderr");
      const shell = await sandbox.shell("echo one; echo two >&2; echo three", { output: "combined" });
      equal([shell.stdout, shell.stderr], ["one\ntwo\nthree\n", ""], "stdout and stderr of a script");
      const missing = await sandbox.exec("no-such-program-here", [], { output: "combined" });
      equal([missing.exitCode, missing.stderr], [127, ""], "exit code and stderr of a missing program");
      check(missing.stdout.includes("no-such-program-here"), `stdout names no program: ${missing.stdout}`);
    },
  },
  {
    id: "exec.combined.cap",
    title: "combined output beyond the cap",
    requirement:
      "Combined output is bounded by `maxOutput` like stdout: head, tail, `truncated` and all bytes counted.",
    ...onlyCombined,
    async run({ sandbox }) {
      const opts = { argv: scriptArgv(BOTH, "3000"), output: "combined", maxOutput: 1_000 } as const;
      const result = await finishes(sandbox, opts);
      equal(result.truncated, { stdout: true, stderr: false }, "truncated");
      equal(result.bytes, { stdout: both(3000).length, stderr: 0 }, "bytes");
      check(result.stdout.startsWith("out-1\nerr-1\n"), `the head is lost: ${result.stdout.slice(0, 40)}`);
      check(result.stdout.endsWith("out-3000\nerr-3000\n"), `the tail is lost: ${result.stdout.slice(-40)}`);
      check(result.stdout.length <= 1_000 + MARKER, `${result.stdout.length} characters were kept of a cap of 1,000`);
    },
  },
  {
    id: "exec.combined.streaming",
    title: "streaming combined output",
    requirement:
      "`onStdout` gets combined output in order; `onStderr` with it is `invalid_argument`. `separate` is the default.",
    ...onlyCombined,
    async run({ sandbox }) {
      let heard = "";
      const decoder = new TextDecoder();
      const onStdout = (chunk: Uint8Array): void => {
        heard += decoder.decode(chunk, { stream: true });
      };
      await finishes(sandbox, { argv: scriptArgv(BOTH, "200"), output: "combined", onStdout });
      check(heard === both(200), `it was not heard in order: ${JSON.stringify(heard.slice(0, 80))}`);
      const argv = ["true"];
      const onStderr = (): void => undefined;
      await refuses("invalid_argument", "onStderr", () => sandbox.exec({ argv, output: "combined", onStderr }));
      const loose = { argv, output: "mixed" } as never;
      await refuses("invalid_argument", "an output that does not exist", () => sandbox.exec(loose));
      const separate = await sandbox.shell("echo out; echo err >&2", { output: "separate" });
      equal([separate.stdout, separate.stderr], ["out\n", "err\n"], "stdout and stderr when they are separate");
    },
  },
  {
    id: "spawn.combined",
    title: "combined output of a process",
    requirement: 'A process with `output: "combined"` has both outputs on stdout, in order, and an empty stderr.',
    ...onlyCombined,
    async run({ sandbox }) {
      await using child = await sandbox.spawn({ argv: scriptArgv(BOTH, "200"), output: "combined" });
      const [out, err] = [new TextReader(child.stdout), new TextReader(child.stderr)];
      check((await out.rest()) === both(200), `stdout is not in order: ${JSON.stringify(out.text.slice(0, 80))}`);
      equal(await err.rest(), "", "stderr");
    },
  },
];
