import type { ProcessHandle, ReadOutputOptions } from "../../../contracts/types.js";
import { check, equal, equalBytes, refuses, within } from "../assert.js";
import { AWAIT_BEAT, assertStill, HEARTBEAT } from "../heartbeat.js";
import { TextReader, typeText } from "../output.js";
import { aside, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

const MIB = 1024 * 1024;
const PATIENCE = 30_000;
const GATE = "until [ -e go ]; do sleep 0.05; done";

async function readText(process: ProcessHandle, opts: ReadOutputOptions = {}): Promise<[string, number, boolean]> {
  const { data, cursor, ended } = await within(PATIENCE, "read", process.read(opts));
  return [new TextDecoder().decode(data), cursor, ended];
}

/** Reads until so many bytes are there, or the end. */
async function readAll(process: ProcessHandle, opts: ReadOutputOptions, least: number): Promise<string> {
  let [text, cursor] = ["", opts.cursor ?? 0];
  for (let isOver = false; !isOver && text.length < least; ) {
    const [more, next, ended] = await readText(process, { ...opts, cursor, wait: PATIENCE });
    check(more !== "" || ended, `a read that waited returned nothing after ${JSON.stringify(text.slice(-80))}`);
    [text, cursor, isOver] = [text + more, next, ended];
  }
  return text;
}

export const processTableCases: readonly ConformanceCase[] = [
  {
    id: "processes.list",
    title: "listing processes",
    requirement: "`processes` lists what `spawn` started, running or ended, with arguments, start, state and exit.",
    async run({ sandbox }) {
      const before = Date.now() - 3_600_000;
      const argv = scriptArgv("until [ -e go ]; do sleep 0.05; done; exit 7");
      const [one, two] = [await sandbox.spawn({ argv }), await sandbox.spawn({ argv: ["sleep", "62"] })];
      const own = async (): Promise<ProcessHandle[]> =>
        (await sandbox.processes()).filter(({ id }) => id === one.id || id === two.id);
      const [first, second] = await own();
      equal([first?.id, first?.argv, first?.state, first?.exit], [one.id, argv, "running", undefined], "the first");
      equal([second?.id, second?.state], [two.id, "running"], "the second");
      const startedAt = Date.parse(first?.startedAt ?? "");
      check(startedAt > before && startedAt < Date.now() + 3_600_000, `startedAt is ${first?.startedAt}`);
      await sandbox.writeFile("go", "");
      await within(PATIENCE, "wait", one.wait());
      const ended = (await own())[0];
      equal([ended?.id, ended?.state, ended?.exit?.exitCode], [one.id, "ended", 7], "the first after its end");
      equal([first?.state, first?.exit?.exitCode], ["ended", 7], "the handle from before its end");
      const found = await sandbox.process(two.id);
      equal([found.id, found.state], [two.id, "running"], "the one that was looked up");
      await found.kill("SIGKILL");
      equal((await within(PATIENCE, "wait", found.wait())).signal, "SIGKILL", "the signal that ended it");
      await refuses("not_found", "an unknown id", () => sandbox.process("no-such-process"));
    },
  },
  {
    id: "processes.read",
    title: "output from a cursor",
    requirement: "`read` returns what came after a cursor, of one stream or of both, and waits for it if asked to.",
    async run({ sandbox }) {
      const text = `printf 12345; ${GATE}; printf 67890; printf abc >&2; exit 4`;
      const { id } = await sandbox.spawn({ argv: scriptArgv(text), background: true, timeout: 60_000 });
      const process = await sandbox.process(id);
      equal(await readAll(process, {}, 5), "12345", "the first output");
      equal(await readText(process), ["12345", 5, false], "from the start again");
      equal(await readText(process, { cursor: 2, maxBytes: 2 }), ["34", 4, false], "two bytes after the second");
      equal(await readText(process, { cursor: 5 }), ["", 5, false], "after all that there is");
      equal(await readText(process, { cursor: 5, wait: 100 }), ["", 5, false], "a wait in which nothing comes");
      const more = aside(readAll(process, { cursor: 5 }, 8));
      await sandbox.writeFile("go", "");
      equal((await more).length, 8, "how much came after it");
      equal((await within(PATIENCE, "wait", process.wait())).exitCode, 4, "exit code");
      const out = await readText(process, { cursor: 3, stream: "stdout" });
      equal(out, ["4567890", 10, true], "stdout from its third byte, after the end");
      equal(await readText(process, { stream: "stderr" }), ["abc", 3, true], "stderr, after the end");
      equal(await readText(process, { cursor: 13 }), ["", 13, true], "the end of both");
    },
  },
  {
    id: "processes.dropped",
    title: "more output than is kept",
    requirement:
      "A process in the background is not slowed down: after `wait` its last MiB is there, and `missed` says how many bytes are gone.",
    async run({ sandbox }) {
      const argv = scriptArgv('head -c "$1" /dev/zero; printf end', `${3 * MIB}`);
      const child = await sandbox.spawn({ argv, background: true, timeout: 60_000 });
      equal((await within(PATIENCE, "wait", child.wait())).exitCode, 0, "exit code, though nobody reads");
      const process = await sandbox.process(child.id);
      const all = await within(PATIENCE, "read", process.read({ cursor: 3 * MIB + 3 }));
      equal([all.data.length, all.missed, all.ended], [0, 0, true], "bytes, missed and ended at the end");
      const kept = await process.read({ cursor: 7 });
      equal([kept.data.length, kept.cursor, kept.missed], [MIB, 3 * MIB + 3, 2 * MIB - 4], "bytes, cursor and missed");
      equalBytes(kept.data.subarray(-4), Uint8Array.of(0, 0x65, 0x6e, 0x64), "the last bytes");
      const stream = child.stdout.getReader();
      await refuses("limit_exceeded", "a stream that fell behind", () => within(PATIENCE, "read", stream.read()));
    },
  },
  {
    id: "processes.attach",
    title: "attaching to a process",
    requirement:
      "`attach` gives input, output from now on, signals and the end of a running process; disposing it leaves the process running.",
    async run({ sandbox }) {
      const { id } = await sandbox.spawn({ argv: ["cat"], stdin: "pipe", background: true, timeout: 60_000 });
      const process = await sandbox.process(id);
      const first = await process.attach();
      await typeText(first.stdin, "one\n");
      await new TextReader(first.stdout).until(/^one\n$/);
      await first[Symbol.asyncDispose]();
      equal(process.state, "running", "state after the disposal");
      const second = await process.attach();
      const out = new TextReader(second.stdout);
      await typeText(second.stdin, "two\n");
      await out.until(/^two\n$/);
      await second.stdin?.close();
      equal(await out.rest(), "two\n", "what it wrote from then on");
      equal((await within(PATIENCE, "wait", second.wait())).exitCode, 0, "exit code");
      equal((await readText(process))[0], "one\ntwo\n", "all that it wrote");
    },
  },
  {
    id: "processes.kill",
    title: "killing a process by its id",
    requirement: "`kill` of a handle sends a signal; SIGKILL ends the whole tree. An ended process can still be read.",
    async run({ sandbox }) {
      const text = `sh -c "$1" sh "$2" & ${AWAIT_BEAT}; echo up; trap "echo usr1" USR1; while :; do sleep 0.1; done`;
      const argv = scriptArgv(text, HEARTBEAT, "beat");
      const { id } = await sandbox.spawn({ argv, output: "separate", background: true });
      const process = await sandbox.process(id);
      equal(await readAll(process, { stream: "stdout" }, 3), "up\n", "the first output");
      await refuses("invalid_argument", "kill SIGNOTHING", () => process.kill("SIGNOTHING"));
      await process.kill("SIGKILL");
      equal((await within(PATIENCE, "wait", process.wait())).exitCode, 137, "exit code");
      await assertStill(sandbox, ["beat"], "after SIGKILL");
      await process.kill();
      equal(await readText(process, { stream: "stdout", wait: PATIENCE }), ["up\n", 3, true], "its output");
    },
  },
  {
    id: "processes.bad-input",
    title: "reads that can't be",
    requirement:
      "A cursor beyond the end, and other wrong options, are `invalid_argument`; an aborted read is `aborted`.",
    async run({ sandbox }) {
      const argv = scriptArgv(`printf 12345; ${GATE}`);
      const child = await sandbox.spawn({ argv, background: true, timeout: 60_000 });
      const process = await sandbox.process(child.id);
      await readAll(process, {}, 5);
      const wrong: [string, object][] = [
        ["a cursor beyond the end", { cursor: 6 }],
        ["a cursor beyond the end of stderr", { cursor: 1, stream: "stderr" }],
        ["a negative cursor", { cursor: -1 }],
        ["half a cursor", { cursor: 0.5 }],
        ["a stream that does not exist", { stream: "stdin" }],
        ["no bytes", { maxBytes: 0 }],
        ["a negative wait", { wait: -1 }],
        ["an unknown option", { curser: 1 }],
      ];
      for (const [what, opts] of wrong) await refuses("invalid_argument", what, () => process.read(opts));
      const controller = new AbortController();
      const waiting = process.read({ cursor: 5, wait: PATIENCE, signal: controller.signal });
      controller.abort();
      await refuses("aborted", "an aborted read", () => within(PATIENCE, "read", waiting));
      const onStdout = (): void => undefined;
      await refuses("invalid_argument", "a callback in the background", () =>
        sandbox.spawn({ argv: ["true"], background: true, onStdout }),
      );
      await sandbox.writeFile("go", "");
      await within(PATIENCE, "wait", child.wait());
    },
  },
  {
    id: "processes.closed",
    title: "processes of a sandbox that was torn down",
    requirement: "Teardown ends a read that waits, and forgets all output.",
    closes: true,
    async run({ sandbox }) {
      const { id } = await sandbox.spawn({ argv: ["sleep", "60"], background: true });
      const process = await sandbox.process(id);
      const waiting = refuses("closed", "a read that waits", () => process.read({ wait: PATIENCE }));
      await within(60_000, "teardown", sandbox.teardown());
      await within(PATIENCE, "the read", waiting);
      equal(process.state, "ended", "state");
      await refuses("closed", "a read after teardown", () => process.read());
      await refuses("closed", "attach after teardown", () => process.attach());
    },
  },
];
