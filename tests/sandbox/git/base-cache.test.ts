import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { createRecord, removeRecord } from "../../../src/ledger/records.js";
import { withLock } from "../../../src/machine/lock.js";
import { removeTree } from "../../../src/machine/remove-tree.js";
import { findRepository } from "../../../src/sandbox/git/repository/repository.js";
import { baseDirOf, openBase } from "../../../src/sandbox/git/source/base-cache.js";
import { createRepository, createScratch, git } from "../../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());

test("a base that somebody is about to take away is waited for, and made again", async () => {
  const repo = createRepository(join(scratch.path, "repo"));
  const repository = await findRepository(repo);
  const sha = git(repo, "rev-parse", "HEAD");
  const id = "0123456789abcdef";
  await createRecord({ id, backend: "local", workDir: join(scratch.path, "work") });
  const dir = baseDirOf(repository, sha);
  expect(await openBase(repository, sha, id)).toMatchObject({ dir });

  let opening: ReturnType<typeof openBase> | undefined;
  await withLock(`base:${dir}`, async () => {
    opening = openBase(repository, sha, id);
    const used = opening.then(() => "used");
    expect(await Promise.race([used, delay(300, "waits")])).toBe("waits");
    await removeTree(dir);
  });
  const base = await opening;
  expect(existsSync(base?.git ?? "")).toBe(true);
  const files = git(repo, "ls-tree", "--name-only", "HEAD").split("\n");
  expect(readdirSync(base?.tree ?? "")).toEqual(expect.arrayContaining(files));
  await removeRecord(id);
});
