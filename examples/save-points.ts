import { strict as assert } from "node:assert";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deleteSnapshot, listSandboxes, listSnapshots, openSandbox, removeSandbox } from "glovebox";

const repo = await mkdtemp(join(tmpdir(), "glovebox-save-points-"));
const git = (...args: string[]): string => execFileSync("git", args, { cwd: repo, encoding: "utf8" }).trim();
git("init", "--quiet", "--initial-branch=main");
await writeFile(join(repo, "readme"), "before\n");
await writeFile(join(repo, ".gitignore"), "cache/\n");
git("add", "-A");
git("-c", "user.name=Example", "-c", "user.email=example@example.invalid", "commit", "--quiet", "-m", "start");

// #region open
await using sandbox = await openSandbox({ backend: "local", repo, branch: "work" });
await sandbox.shell("echo after > readme && git commit -aqm 'made inside' && mkdir cache && echo warm > cache/x");
// #endregion open

// #region snapshot
const id = await sandbox.snapshot();
await sandbox.shell("rm -rf .git cache readme; echo mess > mess");
await sandbox.restore(id);

assert.equal(await sandbox.readFile("readme"), "after\n");
assert.equal(await sandbox.readFile("cache/x"), "warm\n");
assert.equal(await sandbox.readFile("mess"), null);
assert.equal((await sandbox.shell("git log -1 --format=%s")).stdout, "made inside\n");
// #endregion snapshot

// #region changes
const { files, patch } = await sandbox.changes();
assert.deepEqual(files, [{ path: "readme", status: "modified" }]);
assert(patch.includes("-before") && patch.includes("+after"));
// #endregion changes

// #region outlive
await sandbox.teardown();
const saved = (await listSnapshots()).find((snapshot) => snapshot.id === id);
assert.equal(saved?.repo, repo);

await using another = await openSandbox({ backend: "local", repo });
await another.restore(id);
assert.equal(await another.readFile("cache/x"), "warm\n");
await deleteSnapshot(id);
// #endregion outlive

// #region named
await another.snapshot({ name: "warm-cache" });

await using warm = await openSandbox({ snapshot: "warm-cache" });
assert.equal(await warm.readFile("cache/x"), "warm\n");
assert.deepEqual((await warm.changes()).files, files);
await deleteSnapshot("warm-cache");
// #endregion named

// #region lifetime
const hour = 3_600_000;
await using brief = await openSandbox({ backend: "local", keep: true, ttl: 2 * hour, idleTimeout: hour / 6 });
const { expiresAt = "" } = (await listSandboxes()).find((each) => each.id === brief.id) ?? {};
assert(Date.parse(expiresAt) <= Date.now() + 2 * hour);
// #endregion lifetime
await brief.teardown();
await removeSandbox(brief.id);

await warm.teardown();
await another.teardown();
assert.equal(git("for-each-ref", "--format=%(refname)"), "refs/heads/main", "the repository is as it was");
assert.equal(git("status", "--porcelain"), "");
await rm(repo, { recursive: true });
console.log("saved, spoilt, restored, outlived, opened by name");
