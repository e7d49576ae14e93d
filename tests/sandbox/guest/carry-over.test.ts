import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { text } from "../../support/guest/plain-guest.js";
import { compileProbe, createManagers, MANAGERS, type Manager, type Managers } from "../../support/local/manager.js";

let managers: Managers;
let probe: string;
beforeAll(() => {
  managers = createManagers();
  probe = compileProbe("carried-state", managers.directory);
});
afterAll(() => managers.remove());

/** What a command sees of itself, without what differs between any two processes, and without the user's pending signals. */
function normalize(text: string): string {
  return text
    .replace(/^pid \d+\n/, "")
    .replace(/autogroup-\d+/, "autogroup-n")
    .replace(/^SigQ:\t\d+/m, "SigQ:\tn");
}

const LOOK = "exec ./probe look";
/** Pending signals are counted for the whole user: the guest's own come and go, and those of a killed supervisor go with it. */
const SETTLED_LOOK = `until grep -q '^SigQ:[[:space:]]0/' /proc/self/status; do sleep 0.01; done; ${LOOK}`;

/** The pid of a command: the self-test had 2 under the first supervisor, and every later one of it has a larger number. */
function pidOf(text: string): number {
  return Number(/^pid (\d+)$/m.exec(text)?.[1]);
}

/** What the kernel has a limit for: `RLIMIT_CPU` is 0 and `RLIMIT_RTTIME` 15. */
const LIMITS = Array.from({ length: 16 }, (_, number) => `limit-${number}`);

const HARM = [
  ...LIMITS,
  ...["niceness-of-user", "io-priority-of-user", "reset-on-fork", "utilization", "signal", "queued-signals", "group"],
  ...["oom_score_adj", "timerslack_ns", "coredump_filter", "comm", "autogroup", "mem", "clear_refs"].map(
    (file) => `/proc/1/${file}`,
  ),
];

describe.each(MANAGERS)("the next command of a sandbox of %s", (name) => {
  const run = async (...scripts: string[]): Promise<string[]> => {
    const manager = managers.all.find((each) => each.name === name) as Manager;
    const { results } = await manager.run({ programs: { probe }, scripts });
    return results.map(({ stdout }) => stdout);
  };

  test("has the same supervisor and inherits nothing that the one before it changed in itself", async () => {
    const [first = "", second = "", changed, third = "", fourth = ""] = await run(
      LOOK,
      LOOK,
      "exec ./probe change",
      SETTLED_LOOK,
      LOOK,
    );
    expect(changed).toBe("changed\n");
    expect(first).toContain("file 100644\n");
    expect(first).toContain("session 1 group 1 terminal 0\n");
    expect(first).toMatch(/^\/proc: 1 self$/m);
    expect(first).toMatch(/^\/proc\/self\/fd: 0 1 2$/m);
    for (const later of [second, third, fourth]) expect(normalize(later)).toBe(normalize(first));
    const pids = [first, second, third, fourth].map(pidOf);
    expect(pids[0]).toBe(3);
    expect(pids).toEqual([...pids].sort((a, b) => a - b));
    expect(new Set(pids).size).toBe(4);
  });

  test("inherits nothing that the one before it did to process 1, whether that was refused or not", async () => {
    const told = await run(LOOK, ...HARM.flatMap((what) => [`./probe harm ${what}`, SETTLED_LOOK]));
    const [first = ""] = told;
    const seen = HARM.map((what, index) => {
      const [outcome = "", after = ""] = told.slice(2 * index + 1);
      return { what, outcome: outcome.trim(), isSame: normalize(after) === normalize(first), pid: pidOf(after) };
    });
    expect(seen.filter(({ isSame }) => !isSame)).toEqual([]);
    // A test whose calls are all refused would prove nothing.
    const done = seen.filter(({ outcome }) => outcome === "done");
    expect(done.map(({ what }) => what)).toEqual(
      expect.arrayContaining(["limit-7", "niceness-of-user", "io-priority-of-user", "reset-on-fork", "queued-signals"]),
    );
    // What belongs to process 1 alone cannot be changed at all.
    expect(seen.filter(({ what, outcome }) => what.startsWith("/") && outcome === "done")).toEqual([]);
    expect(seen.find(({ what }) => what === "group")?.outcome).not.toBe("done");
  });
});

test("the terminal of a command is not that of the next one, which has the same supervisor", async () => {
  await using sandbox = await createLocalSandbox();
  await sandbox.writeFile("probe", readFileSync(probe), { mode: 0o755 });
  const child = await sandbox.spawn({ argv: ["./probe", "look"], pty: { cols: 80, rows: 25 } });
  const [first] = await Promise.all([text(child.stdout), child.wait()]);
  const { stdout: second } = await sandbox.exec({ argv: ["./probe", "look"] });
  expect(first).toContain("session 1 group 1 terminal 1");
  expect(second).toContain("session 1 group 1 terminal 0");
  expect(pidOf(second)).toBeGreaterThan(pidOf(first.replaceAll("\r", "")));
});

test("System V and POSIX objects belong to the sandbox: the next command finds them", async () => {
  await using sandbox = await createLocalSandbox();
  const { stdout: made } = await sandbox.shell("ipcmk --queue; echo kept > /dev/shm/object");
  const { stdout: found } = await sandbox.shell("ipcs --queues; cat /dev/shm/object");
  expect(made).toMatch(/id: \d+/);
  expect(found).toMatch(/^0x[0-9a-f]+ /m);
  expect(found).toContain("kept\n");
});
