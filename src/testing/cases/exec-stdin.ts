import { setTimeout as delay } from "node:timers/promises";
import { check, equal, equalBytes, refuses } from "../assert.js";
import { noise, utf8 } from "../bytes.js";
import { finishes, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

const EIGHT_MIB = 8 * 1024 * 1024;

export const execStdinCases: readonly ConformanceCase[] = [
  {
    id: "exec.stdin.absent",
    title: "no input",
    requirement: "Without stdin a command reads the end of input at once.",
    async run({ sandbox }) {
      const result = await finishes(sandbox, { argv: scriptArgv("cat; echo done") });
      equal([result.exitCode, result.stdout], [0, "done\n"], "cat without stdin");
    },
  },
  {
    id: "exec.stdin.empty",
    title: "an empty string",
    requirement: "An empty string is an empty input that ends.",
    async run({ sandbox }) {
      for (const stdin of ["", new Uint8Array(0)]) {
        equal((await finishes(sandbox, { argv: scriptArgv("cat; echo done"), stdin })).stdout, "done\n", "cat");
      }
    },
  },
  {
    id: "exec.stdin.string",
    title: "a string",
    requirement: "A string is written as UTF-8, then the input ends.",
    async run({ sandbox }) {
      const text = "first\nsecond € 日本 'quoted' $HOME\nno line break at the end";
      equal((await finishes(sandbox, { argv: ["cat"], stdin: text })).stdout, text, "cat");
    },
  },
  {
    id: "exec.stdin.bytes",
    title: "bytes",
    requirement: "Bytes are written exactly.",
    async run({ sandbox }) {
      const bytes = Uint8Array.from({ length: 1_024 }, (_, i) => i & 255);
      const result = await finishes(sandbox, { argv: ["cat"], stdin: bytes, raw: true });
      equalBytes(result.raw?.stdout, bytes, "cat");
    },
  },
  {
    id: "exec.stdin.iterable",
    title: "an async iterable",
    requirement: "An async iterable is written chunk by chunk while the command runs; the input ends when it ends.",
    async run({ sandbox }) {
      let seen = "";
      let wake = (): void => undefined;
      async function* talk(): AsyncGenerator<Uint8Array> {
        for (const word of ["one", "two", "three"]) {
          yield utf8(`${word}\n`);
          while (!seen.includes(`got ${word}\n`)) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        }
      }
      const result = await finishes(sandbox, {
        argv: scriptArgv('while read -r line; do echo "got $line"; done; echo end'),
        stdin: talk(),
        onStdout: (chunk) => {
          seen += new TextDecoder().decode(chunk);
          wake();
        },
      });
      equal(result.stdout, "got one\ngot two\ngot three\nend\n", "the talk");
    },
  },
  {
    id: "exec.stdin.large",
    title: "8 MiB through cat",
    requirement: "Input larger than any buffer goes through `cat` unchanged: reading and writing overlap.",
    async run({ sandbox }) {
      const bytes = noise(EIGHT_MIB, 11);
      const result = await finishes(sandbox, { argv: ["cat"], stdin: bytes, raw: true, maxOutput: EIGHT_MIB });
      equal([result.exitCode, result.bytes.stdout, result.truncated.stdout], [0, EIGHT_MIB, false], "cat");
      equalBytes(result.raw?.stdout, bytes, "cat");
    },
  },
  {
    id: "exec.stdin.early-exit",
    title: "a command that does not read",
    requirement: "A command that ends without reading its input is not an error.",
    async run({ sandbox }) {
      const stdin = noise(EIGHT_MIB, 12);
      equal((await finishes(sandbox, { argv: ["true"], stdin })).exitCode, 0, "exit code of true");
      const head = await finishes(sandbox, { argv: ["head", "-c", "3"], stdin, raw: true });
      equal(head.exitCode, 0, "exit code of head");
      equalBytes(head.raw?.stdout, stdin.slice(0, 3), "head -c 3");
    },
  },
  {
    id: "exec.stdin.early-exit-iterable",
    title: "a command that does not read an endless input",
    requirement: "When the command ends, an endless iterable is ended by its `return`.",
    async run({ sandbox }) {
      let hasEnded = false;
      async function* endless(): AsyncGenerator<Uint8Array> {
        try {
          for (;;) {
            yield new Uint8Array(65_536);
            await delay(1);
          }
        } finally {
          hasEnded = true;
        }
      }
      const result = await finishes(sandbox, { argv: ["head", "-c", "10"], stdin: endless() });
      equal([result.exitCode, result.bytes.stdout], [0, 10], "head -c 10");
      for (let i = 0; i < 100 && !hasEnded; i++) await delay(50);
      check(hasEnded, "the iterable was never ended");
    },
  },
  {
    id: "exec.stdin.invalid",
    title: "invalid input",
    requirement: "A stdin of the wrong type is `invalid_argument`.",
    async run({ sandbox }) {
      for (const stdin of [42, true, {}]) {
        const call = () => sandbox.exec({ argv: ["cat"], stdin: stdin as unknown as string });
        await refuses("invalid_argument", `stdin ${JSON.stringify(stdin)}`, call);
      }
      equal((await finishes(sandbox, { argv: ["cat"], stdin: "fine" })).stdout, "fine", "cat of a good one");
    },
  },
];
