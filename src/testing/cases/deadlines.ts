import type { ExecResult } from "../../../contracts/types.js";
import { check, equal, includes, refuses, within } from "../assert.js";
import { AWAIT_BEAT, assertStill, HEARTBEAT, withDeadline } from "../heartbeat.js";
import { aside, scriptArgv } from "../script.js";
import type { ConformanceCase, ConformanceContext } from "../types.js";
import { reachesAll } from "./kill-tree.js";

const isReady = (result: ExecResult): boolean => result.stdout.includes("ready");
const LINGER = "echo ready; sleep 60; echo never";

/** Commands that survive a careless kill. `$1` is the heartbeat, `$2` its file. */
const HOSTILE: Readonly<Record<string, { title: string; start: string; leaves?: true; needs?: string }>> = {
  "child-in-group": { title: "a child of the command", start: 'sh -c "$1" sh "$2" &' },
  setsid: {
    title: "a child in its own session",
    start: 'setsid sh -c "$1" sh "$2" &',
    leaves: true,
    needs: "setsid",
  },
  daemon: {
    title: "a daemon: two forks, its own session, no descriptors",
    start: 'setsid sh -c \'( sh -c "$1" sh "$2" & ) &\' sh "$1" "$2" </dev/null >/dev/null 2>&1 &',
    leaves: true,
    needs: "setsid",
  },
  "ignores-term": { title: "a child that ignores SIGTERM", start: 'trap "" TERM HUP INT; sh -c "$1" sh "$2" &' },
  "no-environment": {
    title: "a child with neither environment nor session",
    start: 'env -i setsid /bin/sh -c "$1" sh "$2" &',
    leaves: true,
    needs: "setsid",
  },
  respawner: {
    title: "children that keep replacing themselves",
    start: 'printf %s "$3" > respawn; for n in 1 2; do setsid sh respawn "$2" 0 & done;',
    leaves: true,
    needs: "setsid",
  },
};

const RESPAWN = 'printf x >> "$1"; sleep 0.02; [ "$2" -lt 600 ] && { setsid sh respawn "$1" $(($2+1)) & } ; exit 0';

async function killsAll({ sandbox, skip }: ConformanceContext, name: string): Promise<void> {
  const workload = HOSTILE[name];
  check(workload, `no workload is called ${name}`);
  if (workload.needs) {
    const found = await sandbox.exec({ argv: scriptArgv(`command -v ${workload.needs}`) });
    check(typeof found.exitCode === "number", "exec returned no result");
    if (found.exitCode !== 0) skip(`the sandbox has no ${workload.needs}`);
  }
  const argv = scriptArgv(`echo partial; ${workload.start} ${AWAIT_BEAT}; ${LINGER}`, HEARTBEAT, "beat", RESPAWN);
  const run = (timeout: number) => within(timeout + 20_000, "the call", sandbox.exec({ argv, timeout }));
  const result = await withDeadline(run, isReady);
  equal([result.timedOut, result.exitCode, result.signal], [true, 137, "SIGKILL"], "timedOut, exit code, signal");
  equal(result.stdout, "partial\nready\n", "the partial output");
  await assertStill(sandbox, ["beat"], `after the deadline (${workload.title})`);
}

const hostileCases: ConformanceCase[] = Object.entries(HOSTILE).map(([name, { title, leaves }]) => ({
  id: `deadline.kills.${name}`,
  title: `nothing survives the deadline: ${title}`,
  requirement: `At its deadline a call returns with the partial output, and ${title} is dead. [S1-AC-5]`,
  ...(leaves && { needs: reachesAll }),
  run: (context) => killsAll(context, name),
}));

export const deadlineCases: readonly ConformanceCase[] = [
  {
    id: "deadline.result",
    title: "a deadline is a result",
    requirement:
      "A command over its deadline is killed and returns a result with `timedOut` and exit code 137. [S1-AC-5]",
    async run({ sandbox }) {
      const result = await within(20_000, "the call", sandbox.exec({ argv: ["sleep", "60"], timeout: 300 }));
      equal([result.timedOut, result.exitCode, result.signal], [true, 137, "SIGKILL"], "timedOut, exit code, signal");
      check(result.durationMs >= 290, `durationMs is ${result.durationMs}, less than the deadline`);
    },
  },
  {
    id: "deadline.partial-output",
    title: "output before the deadline",
    requirement: "The result has everything both streams wrote before the deadline, complete and counted.",
    async run({ sandbox }) {
      const text = "i=0; while [ $i -lt 5000 ]; do echo line-$i; i=$((i+1)); done; echo ready; echo warn >&2; sleep 60";
      const run = (timeout: number) =>
        within(timeout + 20_000, "the call", sandbox.exec({ argv: scriptArgv(text), timeout }));
      const result = await withDeadline(run, (r) => r.stderr.includes("warn"));
      equal([result.timedOut, result.stderr], [true, "warn\n"], "timedOut and stderr");
      check(
        result.stdout.startsWith("line-0\n") && result.stdout.endsWith("line-4999\nready\n"),
        "stdout is not whole",
      );
      equal(result.bytes.stdout, Buffer.byteLength(result.stdout), "bytes");
    },
  },
  {
    id: "deadline.in-time",
    title: "an end before the deadline",
    requirement: "A command that ends before its deadline is not touched by it.",
    async run({ sandbox }) {
      const result = await sandbox.exec({ argv: scriptArgv("sleep 0.2; exit 4"), timeout: 30_000 });
      equal([result.timedOut, result.exitCode, result.signal], [false, 4, undefined], "timedOut, exit code, signal");
    },
  },
  {
    id: "deadline.of-sandbox",
    title: "the sandbox's deadline",
    requirement: "`operationTimeout` is the deadline of a command without its own.",
    options: { operationTimeout: 4_000 },
    async run({ sandbox }) {
      const result = await within(20_000, "the call", sandbox.exec({ argv: ["sleep", "60"] }));
      equal([result.timedOut, result.exitCode], [true, 137], "timedOut and exit code");
      const own = await sandbox.exec({ argv: ["sleep", "4.5"], timeout: 30_000 });
      equal([own.timedOut, own.exitCode], [false, 0], "with a longer one of its own");
    },
  },
  {
    id: "deadline.grace",
    title: "a grace period after the deadline",
    requirement: "With `killGrace` a command gets SIGTERM first and may end by itself; its output until then is kept.",
    async run({ sandbox }) {
      const text = 'trap "echo bye; exit 143" TERM; echo ready; while :; do sleep 0.1; done';
      const run = (timeout: number) =>
        within(timeout + 40_000, "the call", sandbox.exec({ argv: scriptArgv(text), timeout, killGrace: 20_000 }));
      const result = await withDeadline(run, isReady);
      equal(
        [result.timedOut, result.exitCode, result.stdout],
        [true, 143, "ready\nbye\n"],
        "timedOut, exit code, stdout",
      );
      check(result.durationMs < 20_000, "the grace was waited out although the command had ended");
    },
  },
  {
    id: "deadline.grace-default-action",
    title: "ended by SIGTERM",
    requirement: "With `killGrace` a command without a handler ends by SIGTERM: exit code 143.",
    async run({ sandbox }) {
      const call = sandbox.exec({ argv: ["sleep", "60"], timeout: 300, killGrace: 20_000 });
      const result = await within(40_000, "the call", call);
      equal([result.timedOut, result.exitCode, result.signal], [true, 143, "SIGTERM"], "timedOut, exit code, signal");
    },
  },
  {
    id: "deadline.grace-ignored",
    title: "SIGTERM ignored",
    requirement: "A command that ignores SIGTERM is killed after the grace period: exit code 137.",
    async run({ sandbox }) {
      const text = `trap "" TERM; sh -c "$1" sh "$2" & ${AWAIT_BEAT}; echo ready; while :; do sleep 0.1; done`;
      const argv = scriptArgv(text, HEARTBEAT, "beat");
      const run = (timeout: number) =>
        within(timeout + 20_000, "the call", sandbox.exec({ argv, timeout, killGrace: 400 }));
      const result = await withDeadline(run, isReady);
      equal([result.timedOut, result.exitCode, result.signal], [true, 137, "SIGKILL"], "timedOut, exit code, signal");
      equal(result.stdout, "ready\n", "stdout");
      await assertStill(sandbox, ["beat"], "after the grace");
    },
  },
  {
    id: "deadline.held-consumer",
    title: "a deadline against a flood",
    requirement: "A command that never stops writing is still ended at its deadline.",
    async run({ sandbox }) {
      const run = (timeout: number) =>
        within(timeout + 30_000, "the call", sandbox.exec({ argv: ["yes"], timeout, maxOutput: 1_000 }));
      const result = await withDeadline(run, ({ bytes }) => bytes.stdout > 1_000, 300);
      equal(
        [result.timedOut, result.exitCode, result.truncated.stdout],
        [true, 137, true],
        "timedOut, code, truncated",
      );
      check(result.stdout.startsWith("y\ny\n") && result.bytes.stdout > 1_000, "the output is lost");
    },
  },
  {
    id: "deadline.others-live",
    title: "other commands go on",
    requirement: "The deadline of one command ends no other.",
    async run({ sandbox }) {
      const other = aside(sandbox.exec({ argv: scriptArgv("sleep 1.5; echo alive") }));
      const late = await within(20_000, "the call", sandbox.exec({ argv: ["sleep", "60"], timeout: 300 }));
      equal(late.timedOut, true, "timedOut of the one");
      equal([(await other).exitCode, (await other).stdout], [0, "alive\n"], "the other");
    },
  },
  {
    id: "deadline.invalid",
    title: "invalid deadlines",
    requirement: "A deadline or grace that is negative or not a number is `invalid_argument`, and nothing is started.",
    async run({ sandbox }) {
      for (const bad of [-1, Number.NaN, "5s" as unknown as number]) {
        for (const option of ["timeout", "killGrace"] as const) {
          const call = () => sandbox.exec({ argv: scriptArgv(": > started"), [option]: bad });
          includes((await refuses("invalid_argument", `${option} ${bad}`, call)).message, option, "message");
        }
      }
      equal(await sandbox.stat("started"), null, "what the command would have made");
    },
  },
  ...hostileCases,
];
