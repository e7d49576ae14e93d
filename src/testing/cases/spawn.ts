import { check, equal, refuses, within } from "../assert.js";
import { AWAIT_BEAT, assertBeating, assertStill, HEARTBEAT } from "../heartbeat.js";
import { TextReader, typeText } from "../output.js";
import { finishes, scriptArgv, until } from "../script.js";
import { findSocketTool } from "../sockets.js";
import type { ConformanceCase } from "../types.js";

export const spawnCases: readonly ConformanceCase[] = [
  {
    id: "spawn.wait",
    title: "waiting for the end",
    requirement: "`wait` returns the exit code of a spawned process, every time it is called.",
    async run({ sandbox }) {
      const child = await sandbox.spawn({ argv: scriptArgv("exit 7") });
      for (let i = 0; i < 2; i++) {
        const end = await within(30_000, "wait", child.wait());
        equal([end.exitCode, end.signal, end.timedOut], [7, undefined, false], "exit code, signal, timedOut");
        check(end.durationMs >= 0, `durationMs is ${end.durationMs}`);
      }
    },
  },
  {
    id: "spawn.streams",
    title: "reading the output",
    requirement: "The output of a spawned process can be read while it runs, each stream separately and to its end.",
    async run({ sandbox }) {
      const text = "echo one; echo warn >&2; until [ -e go ]; do sleep 0.05; done; echo two";
      await using child = await sandbox.spawn({ argv: scriptArgv(text), timeout: 60_000 });
      const [out, err] = [new TextReader(child.stdout), new TextReader(child.stderr)];
      await out.until(/one\n/);
      await err.until(/warn\n/);
      await sandbox.writeFile("go", "");
      equal([await out.rest(), await err.rest()], ["one\ntwo\n", "warn\n"], "stdout and stderr");
      equal((await child.wait()).exitCode, 0, "exit code");
    },
  },
  {
    id: "spawn.stdin",
    title: "writing the input",
    requirement: 'With `stdin: "pipe"` a process reads what is written, and the end of input when it is closed.',
    async run({ sandbox }) {
      await using child = await sandbox.spawn({ argv: ["cat"], stdin: "pipe", timeout: 60_000 });
      const out = new TextReader(child.stdout);
      await typeText(child.stdin, "one\n");
      await out.until(/^one\n$/);
      await typeText(child.stdin, "two €\n");
      await out.until(/two €\n$/);
      await child.stdin?.close();
      equal(await out.rest(), "one\ntwo €\n", "stdout");
      equal((await within(30_000, "wait", child.wait())).exitCode, 0, "exit code");
    },
  },
  {
    id: "spawn.stdin-none",
    title: "no input",
    requirement: "Without `stdin` a spawned process reads the end of input at once and has no stdin to write to.",
    async run({ sandbox }) {
      await using child = await sandbox.spawn({ argv: scriptArgv("cat; echo done") });
      equal(child.stdin, undefined, "stdin");
      equal(await new TextReader(child.stdout).rest(), "done\n", "stdout");
    },
  },
  {
    id: "spawn.env-and-cwd",
    title: "argv, env and cwd",
    requirement: "A spawned process gets argv, env and cwd like an exec.",
    options: { env: { KIT_A: "sandbox" } },
    async run({ sandbox }) {
      await sandbox.makeDirectory("sub");
      const argv = scriptArgv('printf "%s|" "$KIT_A" "$KIT_B" "$1"; pwd', "; echo x");
      await using child = await sandbox.spawn({ argv, env: { KIT_B: "own" }, cwd: "sub" });
      equal(await new TextReader(child.stdout).rest(), `sandbox|own|; echo x|${sandbox.workDir}/sub\n`, "stdout");
    },
  },
  {
    id: "spawn.outlives-exec",
    title: "a long-running process",
    requirement: "A spawned process keeps running during other calls, and has no deadline by default.",
    options: { operationTimeout: 4_000 },
    async run({ sandbox }) {
      await using child = await sandbox.spawn({ argv: scriptArgv(HEARTBEAT, "beat") });
      await finishes(sandbox, { argv: ["sleep", "4.5"], timeout: 20_000 });
      await assertBeating(sandbox, "beat", "after another call and the sandbox's operationTimeout");
      await child.kill("SIGKILL");
    },
  },
  {
    id: "spawn.kill",
    title: "SIGTERM by default",
    requirement: "`kill` sends SIGTERM; a process may handle it, otherwise it ends.",
    async run({ sandbox }) {
      const handles = await sandbox.spawn({
        argv: scriptArgv('trap "exit 5" TERM; echo up; while :; do sleep 0.1; done'),
      });
      await new TextReader(handles.stdout).until(/up/);
      await handles.kill();
      equal((await within(30_000, "wait", handles.wait())).exitCode, 5, "exit code of the one that handles it");
      const plain = await sandbox.spawn({ argv: scriptArgv("echo up; exec sleep 60") });
      await new TextReader(plain.stdout).until(/up/);
      await plain.kill();
      const end = await within(30_000, "wait", plain.wait());
      equal([end.exitCode, end.signal, end.timedOut], [143, "SIGTERM", false], "the one that does not");
    },
  },
  {
    id: "spawn.kill-tree",
    title: "SIGKILL ends the whole tree",
    requirement: "`kill` with SIGKILL ends the process and everything it started.",
    async run({ sandbox }) {
      const text = `trap "" TERM; sh -c "$1" sh "$2" & sh -c "$1" sh other & ${AWAIT_BEAT}; echo up; sleep 60`;
      const child = await sandbox.spawn({ argv: scriptArgv(text, HEARTBEAT, "beat") });
      await new TextReader(child.stdout).until(/up/);
      await until("the other beats", async () => ((await sandbox.stat("other"))?.size ? true : undefined));
      await child.kill("SIGKILL");
      const end = await within(30_000, "wait", child.wait());
      equal([end.exitCode, end.signal], [137, "SIGKILL"], "exit code and signal");
      await assertStill(sandbox, ["beat", "other"], "after SIGKILL");
    },
  },
  {
    id: "spawn.kill-signals",
    title: "any signal",
    requirement: "`kill` sends the requested signal, and refuses one that does not exist.",
    async run({ sandbox }) {
      const text = 'trap "echo usr1" USR1; trap "echo int; exit 0" INT; echo up; while :; do sleep 0.1; done';
      await using child = await sandbox.spawn({ argv: scriptArgv(text), timeout: 60_000 });
      const out = new TextReader(child.stdout);
      await out.until(/up/);
      await refuses("invalid_argument", "kill SIGNOTHING", () => child.kill("SIGNOTHING"));
      await child.kill("SIGUSR1");
      await out.until(/usr1/);
      await child.kill("SIGINT");
      equal(await out.rest(), "up\nusr1\nint\n", "stdout");
    },
  },
  {
    id: "spawn.kill-ended",
    title: "killing an ended process",
    requirement: "Killing a process that has ended is not an error.",
    async run({ sandbox }) {
      const child = await sandbox.spawn({ argv: ["true"] });
      equal((await within(30_000, "wait", child.wait())).exitCode, 0, "exit code");
      await child.kill();
      await child.kill("SIGKILL");
      equal((await child.wait()).exitCode, 0, "exit code afterwards");
    },
  },
  {
    id: "spawn.dispose",
    title: "disposal",
    requirement: "Disposing of a process kills its tree.",
    async run({ sandbox }) {
      const child = await sandbox.spawn({ argv: scriptArgv(HEARTBEAT, "beat") });
      await assertBeating(sandbox, "beat", "before the disposal");
      await within(30_000, "disposal", Promise.resolve(child[Symbol.asyncDispose]()));
      await assertStill(sandbox, ["beat"], "after the disposal");
      equal((await within(30_000, "wait", child.wait())).exitCode, 137, "exit code");
    },
  },
  {
    id: "spawn.timeout",
    title: "a spawned process with a deadline",
    requirement: "A spawned process with a `timeout` is killed then, and `wait` reports it.",
    async run({ sandbox }) {
      const child = await sandbox.spawn({ argv: scriptArgv(HEARTBEAT, "beat"), timeout: 3_000 });
      const end = await within(30_000, "wait", child.wait());
      equal([end.timedOut, end.exitCode, end.signal], [true, 137, "SIGKILL"], "timedOut, exit code, signal");
      await assertStill(sandbox, ["beat"], "after the deadline");
    },
  },
  {
    id: "spawn.missing-program",
    title: "a program that does not exist",
    requirement: "A missing program is a process that ends with 127 and a line on stderr.",
    async run({ sandbox }) {
      const child = await sandbox.spawn({ argv: ["no-such-program-here"] });
      const text = await new TextReader(child.stderr).rest();
      check(text.includes("no-such-program-here"), `stderr names no program: ${JSON.stringify(text)}`);
      equal((await within(30_000, "wait", child.wait())).exitCode, 127, "exit code");
    },
  },
  {
    id: "spawn.server",
    title: "a server",
    requirement: "A later command can reach a spawned server over the sandbox's own loopback.",
    async run({ sandbox, skip }) {
      const tool = (await findSocketTool(sandbox)) ?? skip("no program in the sandbox can open a socket");
      const server = await tool.serve("hello from the server");
      equal(await tool.connect("127.0.0.1", server.port), "hello from the server", "what a later command got");
      await server.process.kill("SIGKILL");
      await within(30_000, "wait", server.process.wait());
      equal(await tool.connect("127.0.0.1", server.port), undefined, "what it got after the server's end");
    },
  },
];
