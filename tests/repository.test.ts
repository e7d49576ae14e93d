import { renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findRepository } from "../src/sandbox/git/repository.js";
import { createScratch, git, type Scratch } from "./support/scratch.js";

let scratch: Scratch;
beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

test("what is known of a repository is found anew when it has become another one", async () => {
  const place = join(scratch.path, "place");
  git(scratch.path, "init", "-q", place);
  const first = await findRepository(place);
  expect(first).toMatchObject({ gitDir: join(place, ".git"), topLevel: place, objectFormat: "sha1" });
  expect(await findRepository(place)).toBe(first);

  renameSync(join(place, ".git"), join(scratch.path, "elsewhere"));
  await expect(findRepository(place)).rejects.toMatchObject({ code: "invalid_argument" });
  git(scratch.path, "init", "-q", "--object-format=sha256", place);
  expect(await findRepository(place)).toMatchObject({ objectFormat: "sha256" });

  git(place, "config", "core.worktree", scratch.path);
  expect(await findRepository(place)).toMatchObject({ topLevel: scratch.path });
});
