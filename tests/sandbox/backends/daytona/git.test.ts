import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listSandboxes } from "../../../../src/sandbox.js";
import { type DaytonaService, startDaytonaService } from "../../../support/daytona/service.js";
import { git } from "../../../support/scratch.js";

let there: DaytonaService;
beforeAll(async () => {
  there = await startDaytonaService();
});
afterAll(() => there.close());

describe.concurrent("a repository", () => {
  test("[S4-AC-8] snapshots are commits with a message, also of nothing, and are restored", async () => {
    await using sandbox = await there.openRepo();
    await sandbox.writeFile("new.txt", "one");
    const first = await sandbox.snapshot();
    const second = await sandbox.snapshot();
    expect((await sandbox.shell("git log -3 --format='%s %an %ae'")).stdout).toBe(
      `${second} harness harness@local\n${first} harness harness@local\nsecond Somebody somebody@example.invalid\n`,
    );
    await sandbox.shell("rm new.txt; echo more >> a.txt; mkdir junk; touch junk/x");
    await sandbox.restore(first);
    expect(await sandbox.listDirectory()).toEqual([".git", ".gitignore", "a.txt", "new.txt", "sub"]);
    expect((await sandbox.changes()).files).toEqual([{ path: "new.txt", status: "added" }]);
  });

  test("a commit never goes to a branch that HEAD was moved to", async () => {
    await using sandbox = await there.openRepo();
    await sandbox.shell("git checkout -q -b elsewhere; echo x > x");
    await expect(sandbox.snapshot()).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("elsewhere"),
    });
    expect(await sandbox.pushBranch("run-1", there.token)).toMatchObject({
      pushed: false,
      error: expect.stringContaining("elsewhere"),
    });
    expect((await sandbox.shell("git log -1 --format=%s")).stdout).toBe("second\n");
  });

  test("[S4-AC-23] a push takes the changes with it; the default branch is asked for once", async () => {
    await using sandbox = await there.openRepo({ branch: "to-push" });
    await sandbox.writeFile("pushed.txt", "yes\n");
    const toolbox = `/toolbox/${there.service.entry(`glovebox-${sandbox.id}`).id}/git/`;
    const gitCalls = (): string[] => there.service.requests.filter((line) => line.includes(toolbox));
    const made = gitCalls().length;
    expect(await sandbox.pushBranch("to-push", there.token)).toEqual({ pushed: true });
    // Where HEAD is is looked at right before the commit, and again right before the push.
    const verbs = gitCalls()
      .slice(made)
      .map((line) => line.split("/").at(-1));
    expect(verbs).toEqual(["status", "status", "add", "commit", "status", "push"]);
    expect(git(there.origin, "show", "to-push:pushed.txt")).toBe("yes");
    expect(git(there.origin, "log", "-1", "--format=%s", "main")).toBe("second");
    const before = there.apiCalls.length;
    expect([await sandbox.defaultBranch(), await sandbox.defaultBranch()]).toEqual(["main", "main"]);
    expect(there.apiCalls.slice(before)).toEqual([
      { url: "/repos/acme/widgets", authorization: `Bearer ${there.token}` },
    ]);
  });

  test("a push that fails is a result without the token", async () => {
    await using sandbox = await there.openRepo({ branch: "no-push" });
    const wrong = "ghp_wrongwrongwrongwrong";
    const result = await sandbox.pushBranch("no-push", wrong);
    expect(result).toMatchObject({ pushed: false, error: expect.stringContaining("authentication required") });
    expect(JSON.stringify(result)).not.toContain(wrong);
    expect(await sandbox.pushBranch("another", there.token)).toMatchObject({ pushed: false });
  });

  test("a fork of a repository has its own branch, changes and all", async () => {
    await using sandbox = await there.openRepo();
    await sandbox.shell("echo dirty > a.txt; echo kept > ignored-not; mkdir ignored; echo i > ignored/x");
    await using fork = await sandbox.fork();
    expect((await fork.shell("git branch --show-current; cat a.txt ignored-not ignored/x")).stdout).toBe(
      "run-1-fork-1\ndirty\nkept\ni\n",
    );
    expect((await sandbox.shell("git branch --show-current")).stdout).toBe("run-1\n");
    expect([...there.service.snapshots.keys()]).toEqual([]);
  });

  test("a checkout that the service refuses on a dirty tree has moved HEAD, and nothing is committed there", async () => {
    await using sandbox = await there.openRepo({ branch: "dirty" });
    await sandbox.writeFile("a.txt", "mine\n");
    const { id } = there.service.entry(`glovebox-${sandbox.id}`);
    const answer = await fetch(`${new URL(there.service.apiUrl).origin}/toolbox/${id}/git/checkout`, {
      ...{ method: "POST", headers: { Authorization: `Bearer ${there.service.apiKey}` } },
      body: JSON.stringify({ path: sandbox.workDir, branch: "main" }),
    });
    expect(answer.status).toBe(409);
    await expect(sandbox.snapshot()).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("main"),
    });
    expect(await sandbox.pushBranch("dirty", there.token)).toMatchObject({ pushed: false });
    expect(git(there.origin, "log", "-1", "--format=%s", "main")).toBe("second");
  });

  test("what a remote or a detached HEAD has against a push is a result", async () => {
    await using sandbox = await there.openRepo({ branch: "behind" });
    git(there.origin, "branch", "behind", "main~1");
    git(
      there.origin,
      "update-ref",
      "refs/heads/behind",
      git(there.origin, "commit-tree", "main~1^{tree}", "-m", "other"),
    );
    const refused = await sandbox.pushBranch("behind", there.token);
    expect(refused).toMatchObject({ pushed: false, error: expect.stringContaining("non-fast-forward") });
    await sandbox.shell("git checkout --quiet --detach");
    expect(await sandbox.pushBranch("behind", there.token)).toMatchObject({ pushed: false });
  });

  test("a machine without a network reaches the remote for a push, nothing else, and only while nothing runs", async () => {
    await using sandbox = await there.openRepo({ branch: "closed", network: "none" });
    await sandbox.writeFile("closed.txt", "yes\n");
    const entry = there.service.entry(`glovebox-${sandbox.id}`);
    const running = await sandbox.spawn({ argv: ["sleep", "60"] });
    expect(await sandbox.pushBranch("closed", there.token)).toMatchObject({
      pushed: false,
      error: expect.stringContaining("processes still run in the sandbox"),
    });
    await running.kill("SIGKILL");
    await running.wait();
    expect(entry.networkAllowList).toBeUndefined();
    expect(await sandbox.pushBranch("closed", there.token)).toEqual({ pushed: true });
    expect(git(there.origin, "show", "closed:closed.txt")).toBe("yes");
    expect([entry.networkBlockAll, entry.networkAllowList]).toEqual([true, "127.0.0.1/32"]);
    expect(entry.machine.reaches("127.0.0.1")).toBe(false);
  });

  test("a list of names is set again after a push", async () => {
    const network = { allow: ["example.org"] };
    await using sandbox = await there.openRepo({ branch: "listed", network });
    expect(await sandbox.pushBranch("listed", there.token)).toEqual({ pushed: true });
    const entry = there.service.entry(`glovebox-${sandbox.id}`);
    expect([entry.networkBlockAll, entry.domainAllowList, entry.networkAllowList]).toEqual([false, "example.org", ""]);
  });

  test("a run may work on the branch that was cloned", async () => {
    await using sandbox = await there.openRepo({ branch: "main" });
    expect((await sandbox.shell("git branch --show-current")).stdout).toBe("main\n");
  });
});

test("[S4-AC-20] a branch that cannot be made leaves no sandbox", async () => {
  there.service.habits.faults = [
    { match: /POST .*\/git\/branches/, action: { status: 500, body: { message: "disk" } } },
  ];
  await expect(there.openRepo()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("run-1"),
  });
  expect([...there.service.sandboxes.values()].filter(({ state }) => state === "started")).toEqual([]);
  expect(await listSandboxes()).toEqual([]);
});

test("a rule that cannot be set again after a push is the end of the sandbox", async () => {
  await using sandbox = await there.openRepo({ branch: "open", network: "none" });
  const settings = /network-settings/;
  const action = { status: 403, body: { message: "not now" } };
  // The first request opens, the second closes.
  there.service.habits.faults = [
    { match: settings, action: { delay: 0 } },
    { match: settings, action },
  ];
  const result = await sandbox.pushBranch("open", there.token);
  expect(result).toMatchObject({ pushed: false, error: expect.stringContaining("could not be restored") });
  await expect(sandbox.exec({ argv: ["true"] })).rejects.toMatchObject({ code: "closed" });
});
