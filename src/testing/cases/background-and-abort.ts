import type { ExecResult } from "../../../contracts/types.js";
import { check, equal, refuses, within } from "../assert.js";
import { AWAIT_BEAT, assertBeating, assertStill, HEARTBEAT } from "../heartbeat.js";
import { finishes, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";
import { reachesAll } from "./kill-tree.js";

export const backgroundAndAbortCases: readonly ConformanceCase[] = [
  {
    id: "background.holds-output",
    title: "a child that keeps the output open",
    requirement:
      "When a command ends while a child has its output open, the call returns soon and the child is killed.",
    async run({ sandbox }) {
      const argv = scriptArgv(`sh -c "$1" sh "$2" & ${AWAIT_BEAT}; echo started; exit 6`, HEARTBEAT, "beat");
      const result = await within(15_000, "the call", sandbox.exec({ argv }));
      const seen = [result.exitCode, result.stdout, result.timedOut];
      equal(seen, [6, "started\n", false], "exit code, stdout, timedOut");
      await assertStill(sandbox, ["beat"], "after the call");
    },
  },
  {
    id: "background.silent",
    title: "a child that closed its streams",
    requirement: "A child in the background is killed with the call, even if it closed every stream.",
    needs: reachesAll,
    async run({ sandbox }) {
      const start = '(trap "" HUP; exec sh -c "$1" sh "$2") </dev/null >/dev/null 2>&1 &';
      const argv = scriptArgv(`${start} ${AWAIT_BEAT}; echo started`, HEARTBEAT, "beat");
      equal((await finishes(sandbox, { argv })).stdout, "started\n", "stdout");
      await assertStill(sandbox, ["beat"], "after the call");
    },
  },
  {
    id: "background.late-output",
    title: "a child's last output",
    requirement: "Output that a child writes just after the command ended is still read.",
    async run({ sandbox }) {
      const argv = scriptArgv("(sleep 0.1; echo late) & echo early");
      let { stdout } = await finishes(sandbox, { argv });
      // On a busy machine the child may be too late; try again.
      for (let tries = 1; tries < 5 && stdout === "early\n"; tries++) ({ stdout } = await finishes(sandbox, { argv }));
      equal(stdout, "early\nlate\n", "stdout");
    },
  },
  {
    id: "abort.before",
    title: "aborted before the start",
    requirement: "With a signal that is already aborted the call is `aborted`, and nothing is started.",
    async run({ sandbox }) {
      const call = () => sandbox.exec({ argv: scriptArgv(": > started"), signal: AbortSignal.abort() });
      await refuses("aborted", "exec with an aborted signal", call);
      equal(await sandbox.stat("started"), null, "what the command would have made");
    },
  },
  {
    id: "abort.midway",
    title: "aborted while it runs",
    requirement: "An abort kills the whole tree and the call is `aborted`, with the partial result on the error.",
    async run({ sandbox }) {
      const abort = new AbortController();
      const argv = scriptArgv(`sh -c "$1" sh "$2" & ${AWAIT_BEAT}; echo part; sleep 60`, HEARTBEAT, "beat");
      const call = sandbox.exec({ argv, signal: abort.signal, onStdout: () => abort.abort(new Error("enough")) });
      const error = await refuses("aborted", "an aborted exec", () => within(30_000, "the call", call));
      const partial = error.partial as ExecResult | undefined;
      equal([partial?.stdout, partial?.timedOut], ["part\n", false], "the partial result's stdout and timedOut");
      await assertStill(sandbox, ["beat"], "after the abort");
    },
  },
  {
    id: "abort.after",
    title: "aborted after the end",
    requirement: "A signal aborted after the end changes nothing.",
    async run({ sandbox }) {
      const abort = new AbortController();
      const result = await sandbox.exec({ argv: ["echo", "x"], signal: abort.signal });
      abort.abort();
      equal([result.exitCode, result.stdout], [0, "x\n"], "the result");
    },
  },
  {
    id: "abort.only-one",
    title: "aborting one of two calls",
    requirement: "An abort ends its own call and no other.",
    async run({ sandbox }) {
      const abort = new AbortController();
      const other = finishes(sandbox, { argv: scriptArgv(HEARTBEAT, "beat"), timeout: 4_000 });
      await assertBeating(sandbox, "beat", "before the abort");
      const onStdout = (): void => abort.abort();
      const call = () => sandbox.exec({ argv: scriptArgv("echo x; sleep 60"), signal: abort.signal, onStdout });
      await refuses("aborted", "the aborted exec", () => within(30_000, "the call", call()));
      const result = await other;
      check(result.exitCode === 0 || result.timedOut, `the other call ended with ${result.exitCode}`);
    },
  },
  {
    id: "abort.opening",
    title: "aborted while opening",
    requirement: "With a signal that is already aborted the opening is `aborted`, and nothing is created.",
    async run({ open }) {
      await refuses("aborted", "open with an aborted signal", () => open({ signal: AbortSignal.abort() }));
    },
  },
];
