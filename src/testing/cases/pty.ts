import { equal, refuses, within } from "../assert.js";
import { TextReader, typeText } from "../output.js";
import { scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

const needs: NonNullable<ConformanceCase["needs"]> = ({ pty }) => (pty ? undefined : "capabilities.pty is false");
const refused: NonNullable<ConformanceCase["refused"]> = async ({ sandbox }) => {
  await refuses("unsupported", "spawn with a pty", () =>
    sandbox.spawn({ argv: ["true"], pty: { cols: 80, rows: 24 } }),
  );
};

export const ptyCases: readonly ConformanceCase[] = [
  {
    id: "pty.is-a-terminal",
    title: "a terminal on all three streams",
    requirement: "With `pty` a process has a terminal on stdin, stdout and stderr; without, on none.",
    needs,
    refused,
    async run({ sandbox }) {
      const argv = scriptArgv(
        "for n in 0 1 2; do if [ -t $n ]; then echo $n yes; else echo $n no; fi; done; echo err >&2",
      );
      await using terminal = await sandbox.spawn({ argv, pty: { cols: 80, rows: 24 } });
      const seen = await new TextReader(terminal.stdout).rest();
      equal(seen.replaceAll("\r\n", "\n"), "0 yes\n1 yes\n2 yes\nerr\n", "with a pty, all on stdout");
      equal((await within(30_000, "wait", terminal.wait())).exitCode, 0, "exit code");
      await using pipes = await sandbox.spawn({ argv });
      equal(await new TextReader(pipes.stdout).rest(), "0 no\n1 no\n2 no\n", "without one");
    },
  },
  {
    id: "pty.size",
    title: "the size of a terminal",
    requirement: "The terminal has the requested size, and the new one after `resize`.",
    needs,
    refused,
    async run({ sandbox, skip }) {
      if ((await sandbox.exec({ argv: scriptArgv("command -v stty") })).exitCode === 1) skip("the sandbox has no stty");
      const argv = scriptArgv("stty -echo; stty size; read -r _; stty size; echo end");
      await using child = await sandbox.spawn({ argv, pty: { cols: 91, rows: 33 }, timeout: 60_000 });
      const out = new TextReader(child.stdout);
      await out.until(/33 91\r?\n/);
      await child.resize?.(123, 45);
      await typeText(child.stdin, "\n");
      await out.until(/45 123\r?\n/);
      await out.until(/end/);
    },
  },
  {
    id: "pty.keys",
    title: "typing and Ctrl-C",
    requirement: "Typed text is echoed and read; Ctrl-C interrupts the command in the foreground.",
    needs,
    refused,
    async run({ sandbox }) {
      const argv = scriptArgv(
        'trap "echo interrupted; exit 3" INT; echo up; read -r line; echo "got $line"; while :; do sleep 0.1; done',
      );
      await using child = await sandbox.spawn({ argv, pty: { cols: 80, rows: 24 }, timeout: 60_000 });
      const out = new TextReader(child.stdout);
      await out.until(/up\r?\n/);
      await typeText(child.stdin, "hello\n");
      await out.until(/hello\r?\n[\s\S]*got hello\r?\n/);
      await typeText(child.stdin, "\u0003");
      await out.until(/interrupted/);
      equal((await within(30_000, "wait", child.wait())).exitCode, 3, "exit code");
    },
  },
  {
    id: "pty.end-of-input",
    title: "Ctrl-D",
    requirement: "Ctrl-D on an empty line is the end of input.",
    needs,
    refused,
    async run({ sandbox }) {
      await using child = await sandbox.spawn({
        argv: scriptArgv("echo up; cat; echo done"),
        pty: { cols: 80, rows: 24 },
        timeout: 60_000,
      });
      const out = new TextReader(child.stdout);
      await out.until(/up\r?\n/);
      await typeText(child.stdin, "\u0004");
      await out.until(/done/);
      equal((await within(30_000, "wait", child.wait())).exitCode, 0, "exit code");
    },
  },
  {
    id: "pty.invalid",
    title: "invalid sizes",
    requirement: "A size that is zero, negative or not a whole number is `invalid_argument`.",
    needs,
    refused,
    async run({ sandbox }) {
      for (const pty of [
        { cols: 0, rows: 24 },
        { cols: 80, rows: -1 },
        { cols: 80.5, rows: 24 },
        { cols: 80, rows: 99_999 },
      ]) {
        await refuses("invalid_argument", `pty ${JSON.stringify(pty)}`, () => sandbox.spawn({ argv: ["true"], pty }));
      }
      await using child = await sandbox.spawn({ argv: ["true"], pty: { cols: 1, rows: 1 } });
      equal((await within(30_000, "wait", child.wait())).exitCode, 0, "exit code with the smallest size");
    },
  },
];
