import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createManagers, MANAGERS, type Manager, type Managers } from "../../../support/local/manager.js";
import { createRepository } from "../../../support/scratch.js";

let managers: Managers;
beforeAll(() => {
  managers = createManagers();
});
afterAll(() => managers.remove());

const cases = MANAGERS.flatMap((name) =>
  (["worktree", "overlay", "copy"] as const).map((kind) => [kind, name] as const),
);

describe.concurrent("the whole life of a sandbox on a repository, with a list of names for a network", () => {
  test.for(cases)("%s, by %s", async ([workspace, name], { expect }) => {
    const manager = managers.all.find((each) => each.name === name) as Manager;
    const repo = createRepository(join(manager.home, `${workspace}-repo`));
    for (const path of execFileSync("find", [repo, "-print0"]).toString().split("\0").filter(Boolean))
      manager.own(path);
    const look = (): string =>
      execFileSync("git", ["-c", `safe.directory=${repo}`, "-C", repo, "for-each-ref"]).toString();
    const before = [look(), readdirSync(join(repo, ".git")).sort()];
    const state = join(manager.home, workspace);
    const options = { repo, branch: "work", workspace, network: { allow: ["example.com"] } };
    const answer = (await manager.run({
      child: "live.mjs",
      options,
      env: { GLOVEBOX_HOME: state },
    })) as unknown as Record<string, unknown>;
    expect(answer).toMatchObject({
      results: {
        inside: expect.stringMatching(/^[1-9]\d*\n$/),
        changes: ["in", "work"],
        restored: "in\nw\none more\nin\n",
        forks: ["in\nw\nin\n", "in\nw\nin\n"],
        way: "403",
        direct: "7\n",
      },
      told: ["blocked blocked.test:80: network.allow does not have it"],
      left: [],
    });
    const held = workspace === "overlay" ? /refs\/glovebox\/bases\/[0-9a-f]+\n/ : /$/;
    expect(look().replace(/^.*refs\/glovebox\/bases\/.*\n/m, "")).toBe(before[0]);
    expect(look()).toMatch(held);
    expect(readdirSync(join(repo, ".git")).sort()).toEqual(before[1]);
    expect(readdirSync(join(manager.home, "tmp")).filter((entry) => entry.includes(String(answer["id"])))).toEqual([]);
  });
});

test("[F-23] a user who may start no more processes: unavailable, what runs goes on, and all is well when there is room again", async ({
  expect,
}) => {
  const manager = managers.all.find(({ name }) => name === "an ordinary user") as Manager;
  const repo = createRepository(join(manager.home, "scarce-repo"));
  for (const path of execFileSync("find", [repo, "-print0"]).toString().split("\0").filter(Boolean)) manager.own(path);
  const env = { GLOVEBOX_HOME: join(manager.home, "scarce") };
  const answer = await manager.run({ child: "no-processes.mjs", options: { repo, workspace: "overlay" }, env });
  const failed = { open: "unavailable", changes: "unavailable", snapshot: "unavailable", fork: "unavailable" };
  expect(answer).toEqual({
    without: { ...failed, exec: "ok" },
    later: { open: "ok", exec: "ok", changes: "ok", snapshot: "ok", fork: "ok" },
    left: [],
  });
});

const ONE_USER = "only root can make something for another user";

describe("a user without a home directory", () => {
  const homeless = [
    ["whose HOME is not writable", "/"],
    ["whose HOME is empty", ""],
    ["whom the system does not know", undefined],
    ["whose HOME does not exist", "/nonexistent/somewhere"],
  ] as const;

  /** An ordinary user with a temporary directory of these permissions, and the variables of such a user. */
  function homelessUser(HOME: string | undefined, mode: number, owner: "user" | "root" = "root") {
    const manager = managers.all.find(({ name }) => name === "an ordinary user") as Manager;
    const tmp = mkdtempSync(join(manager.home, "tmp-"));
    chmodSync(tmp, mode);
    if (owner === "user") manager.own(tmp);
    const env = { HOME: HOME as string, GLOVEBOX_HOME: "", TMPDIR: tmp };
    return { manager, tmp, env };
  }

  test.for(homeless)("%s gets a private temporary one", async ([_name, HOME], { expect }) => {
    const { manager, tmp, env } = homelessUser(HOME, 0o755, "user");
    const { results } = await manager.run({ scripts: ["echo inside"], env });
    expect(results).toEqual([{ exitCode: 0, stdout: "inside\n", stderr: "" }]);
    const [place, ...others] = readdirSync(tmp);
    expect([place, others]).toEqual([expect.stringMatching(/^glovebox-\d+$/), []]);
    expect(statSync(join(tmp, place as string)).mode & 0o777).toBe(0o700);
  });

  test("the next process of this user has the same one, with what was kept", async ({ expect }) => {
    const { manager, tmp, env } = homelessUser("/", 0o1777);
    const { id } = await manager.run({ options: { keep: true }, scripts: ["echo one > file"], env });
    const { results } = await manager.run({ options: { id }, scripts: ["cat file"], env });
    expect(results).toMatchObject([{ stdout: "one\n" }]);
    expect(readdirSync(tmp).filter((name) => name.startsWith("glovebox-"))).toHaveLength(1);
  });

  test.for([
    [
      "a directory of somebody else's",
      (path: string) => mkdirSync(path, { mode: 0o700 }),
      /is not a directory of this user/,
    ],
    ["a link", (path: string, manager: Manager) => symlinkSync(manager.home, path), /is not a directory of this user/],
    [
      "one that is open to others",
      (path: string, manager: Manager) => {
        mkdirSync(path);
        chmodSync(path, 0o777);
        manager.own(path);
      },
      /is open to other users/,
    ],
  ] as const)("%s at its place is refused", async ([_name, squat, message], { expect, skip }) => {
    if (process.getuid?.() !== 0) skip(ONE_USER);
    const { manager, tmp, env } = homelessUser("/", 0o1777);
    const path = join(tmp, `glovebox-${statSync(manager.home).uid}`);
    squat(path, manager);
    await expect(manager.run({ env })).rejects.toThrow(message);
    await expect(manager.run({ env })).rejects.toThrow(/permission_denied: .*\(Set GLOVEBOX_HOME/);
  });

  test("a temporary directory where others could replace it is refused", async ({ expect, skip }) => {
    if (process.getuid?.() !== 0) skip(ONE_USER);
    const { manager, tmp, env } = homelessUser("/", 0o777);
    await expect(manager.run({ env })).rejects.toThrow(
      /permission_denied: in .* other users can replace what is yours/,
    );
    expect(readdirSync(tmp)).toEqual([]);
  });
});
