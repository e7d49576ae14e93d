import { chownSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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

describe.each(["required", "none"] as const)(
  "a kept sandbox (isolation %s) with something else in its place",
  (isolation) => {
    const keep = async (): Promise<{ id: string; place: string }> => {
      const sandbox = await createLocalSandbox({ isolation, keep: true });
      await sandbox.teardown();
      const { id, hostDir: place = "" } = sandbox;
      rmSync(place, { recursive: true });
      return { id, place };
    };

    test("a link is not followed", async () => {
      const { id, place } = await keep();
      const victim = join(scratch.path, `victim-${isolation}`);
      mkdirSync(victim);
      writeFileSync(join(victim, "key"), "secret");
      symlinkSync(victim, place);
      await expect(createLocalSandbox({ id })).rejects.toMatchObject({
        code: "tampered",
        message: expect.stringContaining(place),
      });
      await removeSandbox(id);
      expect(readFileSync(join(victim, "key"), "utf8")).toBe("secret");
    });

    test("a directory of another user is not used", async ({ skip }) => {
      if (process.geteuid?.() !== 0) skip("only root can make a directory of another user");
      const { id, place } = await keep();
      mkdirSync(place);
      chownSync(place, 12_345, 12_345);
      await expect(createLocalSandbox({ id })).rejects.toMatchObject({ code: "tampered" });
      await removeSandbox(id);
    });
  },
);

test("a mount whose directory is gone is named", async () => {
  const source = join(scratch.path, "mounted");
  await expect(createLocalSandbox({ mounts: [{ source }] })).rejects.toMatchObject({
    message: expect.stringContaining(source),
    code: expect.not.stringMatching("no_isolation"),
  });
});
