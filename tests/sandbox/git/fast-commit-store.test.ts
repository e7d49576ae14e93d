import { existsSync, readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createRef, lastNumber } from "../../../src/sandbox/git/fast-commit/create-ref.js";
import { gitObject } from "../../../src/sandbox/git/fast-commit/git-object.js";
import { writeLooseObjects } from "../../../src/sandbox/git/fast-commit/loose-object.js";
import { createRepository, createScratch, git } from "../../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());
const repo = createRepository(join(scratch.path, "repo"));
const gitDir = join(repo, ".git");
const objects = join(gitDir, "objects");

test("an object is stored as git would, once; the next time it is only made young again", async () => {
  const blob = gitObject("blob", Buffer.from("by ourselves\n"), "sha1");
  await writeLooseObjects(objects, [blob], true);
  expect(git(repo, "cat-file", "blob", blob.id)).toBe("by ourselves");
  const path = join(objects, blob.id.slice(0, 2), blob.id.slice(2));
  utimesSync(path, 1_000, 1_000);
  await writeLooseObjects(objects, [blob], true);
  expect(git(repo, "prune", "--dry-run", "--expire=2.hours.ago")).toBe("");
});

test("an object whose name belongs to something else is refused", async () => {
  const [kept, other] = ["one\n", "two\n"].map((text) => gitObject("blob", Buffer.from(text), "sha1"));
  if (kept === undefined || other === undefined) throw new Error("there are two");
  await writeLooseObjects(objects, [kept]);
  const collision = { id: kept.id, bytes: other.bytes };
  await expect(writeLooseObjects(objects, [collision])).rejects.toMatchObject({ code: "tampered" });
  expect(git(repo, "cat-file", "blob", kept.id)).toBe("one");
});

test("a ref is made once, also when the one that is there is packed, and nothing else is left", async () => {
  const [first, second] = [git(repo, "rev-parse", "HEAD"), git(repo, "rev-parse", "HEAD^{tree}")];
  const prefix = "refs/glovebox/made/";
  expect(await createRef(gitDir, `${prefix}1`, first)).toBe(true);
  expect(await createRef(gitDir, `${prefix}1`, second)).toBe(false);
  expect(readdirSync(join(gitDir, prefix))).toEqual(["1"]);
  git(repo, "pack-refs", "--all", "--prune");
  expect(existsSync(join(gitDir, prefix))).toBe(false);
  expect(await createRef(gitDir, `${prefix}1`, second)).toBe(false);
  expect(await lastNumber(gitDir, prefix)).toBe(1);
  expect(git(repo, "rev-parse", `${prefix}1`)).toBe(first);
  expect(readdirSync(objects).filter((name) => name.startsWith("tmp"))).toEqual([]);
});
