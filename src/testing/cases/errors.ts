import type { SandboxErrorCode } from "../../../contracts/errors.js";
import { asSandboxError, check, equal, includes, refuses } from "../assert.js";
import type { ConformanceCase } from "../types.js";

export const errorCases: readonly ConformanceCase[] = [
  {
    id: "errors.shape",
    title: "the shape of an error",
    requirement:
      "Every failure is a `SandboxError` with a code of the closed set, the backend, the operation and `retryable`.",
    async run({ sandbox }) {
      const calls: [SandboxErrorCode, string, () => Promise<unknown>][] = [
        ["not_found", "exec", () => sandbox.exec({ argv: ["true"], cwd: "missing" })],
        ["path_confinement", "readFile", () => sandbox.readFile("../x")],
        ["not_found", "listDirectory", () => sandbox.listDirectory("missing")],
        ["path_confinement", "writeFile", () => sandbox.writeFile("/etc/x", "x")],
        ["invalid_argument", "spawn", () => sandbox.spawn({ argv: [] })],
      ];
      for (const [code, operation, call] of calls) {
        const error = await refuses(code, operation, call);
        equal([error.backend, error.operation], [sandbox.backend, operation], `backend and operation of ${operation}`);
        equal([error.retryable, typeof error.message, error.stack !== undefined], [false, "string", true], operation);
        check(error.message.length > 0, `${operation}: the message is empty`);
      }
    },
  },
  {
    id: "errors.not-a-result",
    title: "a failing command is not an error",
    requirement: "A command's own failure is a result, never an error.",
    async run({ sandbox }) {
      const result = await sandbox.shell("echo oops >&2; exit 1");
      equal([result.exitCode, result.stderr], [1, "oops\n"], "the result");
      equal((await sandbox.shell("no-such-command-here")).exitCode, 127, "a script with a missing command");
    },
  },
  {
    id: "errors.unknown-option",
    title: "unknown options",
    requirement: "An unknown option is `invalid_argument` that names it: a misspelt restriction must not be lost.",
    async run({ sandbox, open }) {
      const at = (opts: object) => () => open(opts);
      includes((await refuses("invalid_argument", "open", at({ netwrok: "none" }))).message, "netwrok", "message");
      const exec = () => sandbox.exec({ argv: ["true"], timeuot: 5 } as never);
      includes((await refuses("invalid_argument", "exec", exec)).message, "timeuot", "message");
    },
  },
  {
    id: "errors.bad-options",
    title: "invalid options",
    requirement: "A wrong type or an impossible value at opening is `invalid_argument` that names the option.",
    async run({ open }) {
      const bad: Record<string, unknown>[] = [
        { operationTimeout: -1 },
        { operationTimeout: "10s" },
        { maxOutput: -5 },
        { network: "some" },
        { network: { allow: "example.com" } },
        { limits: { memory: 0 } },
        { limits: { pids: -1 } },
        { limits: { cpus: Number.NaN } },
        { env: "A=B" },
        { allow: "echo" },
        { isolation: "maybe" },
        { keep: "yes" },
        { baseDir: 42 },
      ];
      for (const opts of bad) {
        const [option] = Object.keys(opts);
        const error = await refuses("invalid_argument", `open(${JSON.stringify(opts)})`, () => open(opts as never));
        includes(error.message, option ?? "", "the message names the option");
      }
    },
  },
  {
    id: "errors.concurrent",
    title: "errors of concurrent calls",
    requirement: "Of concurrent calls, only those with a reason to fail do.",
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      const outcomes = await Promise.allSettled([
        sandbox.readFile("file"),
        sandbox.readFile("../x"),
        sandbox.exec({ argv: ["echo", "fine"] }),
        sandbox.listDirectory("missing"),
        sandbox.readFile("missing"),
        sandbox.exec({ argv: ["true"], cwd: "missing" }),
      ]);
      const seen = outcomes.map((o) => (o.status === "fulfilled" ? "fine" : asSandboxError(o.reason, "a call").code));
      equal(seen, ["fine", "path_confinement", "fine", "not_found", "fine", "not_found"], "outcomes");
    },
  },
];
