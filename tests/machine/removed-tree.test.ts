import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import { removeSandbox } from "../../src/sandbox.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterAll(() => scratch.remove());

describe.each([
  ["a worktree", { workspace: "worktree" }],
  ["a copy", { workspace: "copy" }],
] as const)("%s whose directory somebody removed", (_what, { workspace }) => {
  test("is gone, for calls that look at it and for one that opens it again; isolation has no part in it", async () => {
    const sandbox = await createLocalSandbox({ repo, workspace, keep: true });
    rmSync(sandbox.workDir, { recursive: true });
    const gone = {
      code: "not_found",
      message: `${sandbox.workDir} is gone, and the sandbox needs it`,
      hint: expect.stringContaining("glovebox rm"),
    };
    await expect(sandbox.changes()).rejects.toMatchObject(gone);
    await expect(sandbox.snapshot()).rejects.toMatchObject(gone);
    await sandbox.teardown();
    await expect(createLocalSandbox({ id: sandbox.id })).rejects.toMatchObject(gone);
    // What is left of it can be removed, as the hint says.
    await removeSandbox(sandbox.id);
    await expect(createLocalSandbox({ id: sandbox.id })).rejects.toMatchObject({
      code: "not_found",
      message: expect.stringContaining("No kept sandbox"),
    });
  });
});

test("a mount whose directory is gone is named", async () => {
  const source = join(scratch.path, "mounted");
  await expect(createLocalSandbox({ mounts: [{ source }] })).rejects.toMatchObject({
    message: expect.stringContaining(source),
    code: expect.not.stringMatching("no_isolation"),
  });
});
