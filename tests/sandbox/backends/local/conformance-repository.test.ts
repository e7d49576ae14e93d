import { join } from "node:path";
import { afterAll } from "vitest";
import { createLocalHarness } from "../../../support/local/harness.js";
import { createRepository, createScratch, git } from "../../../support/scratch.js";
import { testConformance } from "../../../support/test-conformance.js";

const scratch = createScratch();
const repo = createRepository(join(scratch.path, "repo"));
let count = 0;
const harness = createLocalHarness("local with a repository", () => ({ repo, branch: `kit-${++count}` }));

// Only what a work directory that is not empty at the start does not change.
testConformance(
  {
    ...harness,
    async census() {
      const refs = git(repo, "for-each-ref", "--format=%(refname)").split("\n");
      const worktrees = git(repo, "worktree", "list", "--porcelain").split("\n");
      return [...((await harness.census?.()) ?? []), ...refs, ...worktrees];
    },
  },
  ["lifecycle", "snapshot", "restore", "changes"],
);
afterAll(() => scratch.remove());
