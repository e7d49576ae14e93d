import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { listSandboxes, listSnapshots } from "../../src/sandbox.js";
import { expectInTime, timed, useLoad } from "./suite.js";

const isRoot = process.getuid?.() === 0;
const WORKSPACES = ["worktree", "overlay", "copy"] as const;
const suite = useLoad(async ({ place: { repo } }) => {
  for (const workspace of WORKSPACES) await (await createLocalSandbox({ repo, workspace })).teardown();
});
const { use, quietly } = suite;

function openQuietly(opts: SandboxOptions = {}): Promise<Sandbox> {
  const limits = isRoot ? { limits: { pids: 200 } } : {};
  return quietly(async () => use(await createLocalSandbox({ ...limits, ...opts })));
}

describe("opening", () => {
  test.for(WORKSPACES.flatMap((workspace) => [200, 1_000, 20_000].map((deadline) => [workspace, deadline] as const)))(
    "a %s within %i ms",
    async ([workspace, operationTimeout]) => {
      const result = await timed(() => createLocalSandbox({ repo: suite.place.repo, workspace, operationTimeout }));
      use(result.value);
      expectInTime(operationTimeout, result);
    },
  );

  test("an empty one within 100 ms", async () => {
    const result = await timed(() => createLocalSandbox({ operationTimeout: 100 }));
    use(result.value);
    expectInTime(100, result);
  });

  test("ten of one repository at once, each within 3 s", async () => {
    const all = await Promise.all(
      Array.from({ length: 10 }, () =>
        timed(() => createLocalSandbox({ repo: suite.place.repo, operationTimeout: 3_000 })),
      ),
    );
    for (const { value } of all) use(value);
    for (const each of all) expectInTime(3_000, each);
  });

  test("aborted after 300 ms", async () => {
    const signal = AbortSignal.timeout(300);
    const result = await timed(() => createLocalSandbox({ repo: suite.place.repo, signal }));
    use(result.value);
    expectInTime(300, result, ["aborted"]);
  });
});

describe("commands", () => {
  const STUBBORN = `trap '' TERM HUP INT; for i in 1 2 3 4 5 6; do (trap '' TERM HUP INT; while :; do :; done) & done; while :; do sleep 1; done`;

  test.for([
    ["that sleeps", "sleep 60"],
    ["that is busy and ignores signals", STUBBORN],
    ["that writes without an end", "yes"],
  ])("one %s, with a timeout of 1 s", async ([, script]) => {
    const sandbox = await openQuietly();
    const result = await timed(() => sandbox.shell(script as string, { timeout: 1_000 }));
    expectInTime(1_000, result);
    expect(result.value).toMatchObject({ timedOut: true, exitCode: 137 });
  });

  test("one with a timeout of 1 s and a grace of 500 ms", async () => {
    const sandbox = await openQuietly();
    const result = await timed(() => sandbox.shell(STUBBORN, { timeout: 1_000, killGrace: 500 }));
    expectInTime(1_500, result);
    expect(result.value).toMatchObject({ timedOut: true });
  });

  test("one that is aborted after 500 ms", async () => {
    const sandbox = await openQuietly();
    const result = await timed(() => sandbox.shell(STUBBORN, { signal: AbortSignal.timeout(500) }));
    expectInTime(500, result, ["aborted"]);
    expect(result.error).toMatchObject({ code: "aborted" });
  });

  test("twelve at once, each with a timeout of 1 s", async () => {
    const sandbox = await openQuietly();
    const all = await Promise.all(
      Array.from({ length: 12 }, () => timed(() => sandbox.shell(STUBBORN, { timeout: 1_000 }))),
    );
    for (const each of all) expectInTime(1_000, each);
  });

  test("one that is killed", async () => {
    const sandbox = await openQuietly();
    const started = await timed(() => sandbox.spawn({ argv: ["sh", "-c", STUBBORN] }));
    expectInTime(0, started);
    const result = await timed(async () => {
      await started.value?.kill("SIGKILL");
      return await started.value?.wait();
    });
    expectInTime(0, result);
    expect(result.value).toMatchObject({ exitCode: 137 });
  });

  test("one with a timeout of 500 ms while a snapshot holds everything still", async () => {
    const sandbox = await openQuietly({ repo: suite.place.repo });
    await sandbox.shell("for n in $(seq 300); do echo $n > new-$n; done");
    const snapshot = timed(() => sandbox.snapshot());
    const result = await timed(() => sandbox.exec({ argv: ["sleep", "60"], timeout: 500 }));
    expectInTime(500, result);
    expect(result.value).toMatchObject({ timedOut: true });
    await snapshot;
  });
});

describe("files", () => {
  test("each call within 1 s", async () => {
    const sandbox = await openQuietly({ operationTimeout: 1_000 });
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`many/${n}`, "x".repeat(1_000)]));
    const calls: (() => Promise<unknown>)[] = [
      () => sandbox.writeFile("a/b", "x"),
      () => sandbox.writeFiles(many),
      () => sandbox.readFile("a/b"),
      () => sandbox.readBytes("many/1"),
      () => sandbox.stat("a/b"),
      () => sandbox.listDirectory("many"),
      () => sandbox.makeDirectory("c/d"),
      () => sandbox.deleteFile("a/b"),
      () => sandbox.exportDirectory("many", join(suite.place.path, "out")),
      () => sandbox.refreshFromHost(join(suite.place.repo, "part-1"), "in"),
      () => sandbox.setWorkdir("c"),
    ];
    for (const call of calls) expectInTime(1_000, await timed(call));
  });
});

const CHANGE = `for n in $(seq 300); do echo $n > new-$n; echo $n >> part-1/file-1.txt; done
git add -A; git -c user.name=a -c user.email=b commit -qm inside; rm -rf part-2`;

/** With files changed, and a deadline that only the calls after this have. */
async function openChanged(workspace: (typeof WORKSPACES)[number], operationTimeout: number): Promise<Sandbox> {
  return await quietly(async () => {
    const before = use(await createLocalSandbox({ repo: suite.place.repo, workspace, keep: true }));
    expect((await before.shell(CHANGE)).exitCode).toBe(0);
    await before.snapshot();
    await before.teardown();
    return use(await createLocalSandbox({ id: before.id, keep: false, operationTimeout }));
  });
}

describe("the files as a whole", () => {
  const calls: Record<string, (sandbox: Sandbox) => Promise<unknown>> = {
    changes: (sandbox) => sandbox.changes(),
    snapshot: (sandbox) => sandbox.snapshot(),
    restore: async (sandbox) => sandbox.restore((await listSnapshots())[0]?.id ?? ""),
    fork: async (sandbox) => use(await sandbox.fork()),
  };
  test.for(WORKSPACES.flatMap((workspace) => Object.keys(calls).map((name) => [workspace, name] as const)))(
    "%s: %s within 1 s, and then the teardown",
    async ([workspace, name]) => {
      const sandbox = await openChanged(workspace, 1_000);
      expectInTime(1_000, await timed(() => (calls[name] as (sandbox: Sandbox) => Promise<unknown>)(sandbox)));
      expectInTime(1_000, await timed(() => sandbox.teardown()));
    },
  );

  test.for(WORKSPACES)("%s: what a snapshot and a fork make too late does not stay", async (workspace) => {
    const sandbox = await openChanged(workspace, 300);
    const before = (await listSnapshots()).length;
    const late = [await timed(() => sandbox.snapshot()), await timed(() => sandbox.fork())];
    for (const each of late) expectInTime(300, each);
    use(late[1]?.value as Sandbox | undefined);
    const made = late.map(({ value }) => (value === undefined ? 0 : 1));
    await quietly(async () => {
      const now = async (): Promise<number[]> => [(await listSnapshots()).length, (await listSandboxes()).length];
      // Neither is seen before it is whole, so what has settled is what stays.
      await sandbox.exec({ argv: ["true"], timeout: 60_000 });
      await expect.poll(now, { timeout: 30_000, interval: 500 }).toEqual([before + (made[0] ?? 0), 1 + (made[1] ?? 0)]);
    });
  });
});

describe("teardown", () => {
  test.for(WORKSPACES)("of a %s, in which much is going on, within 1 s", async (workspace) => {
    const sandbox = await openQuietly({ repo: suite.place.repo, workspace, operationTimeout: 1_000 });
    const busy = sandbox.shell("while :; do :; done & while :; do sleep 1; done").catch(() => undefined);
    const snapshot = sandbox.snapshot().catch(() => undefined);
    expectInTime(1_000, await timed(() => sandbox.teardown()));
    await Promise.all([busy, snapshot]);
  });
});
