import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findRepository, type Repository } from "../../../src/sandbox/git/repository/repository.js";
import { readCheckoutSettings } from "../../../src/sandbox/git/repository/repository-settings.js";
import { createRepository, createScratch, git, type Scratch } from "../../support/scratch.js";

let scratch: Scratch;
let repository: Repository;

beforeEach(async () => {
  scratch = createScratch();
  repository = await findRepository(createRepository(join(scratch.path, "repo")));
});

afterEach(() => scratch.remove());

test.each(["config", "config.worktree"])("what is written to %s is seen by the next look", async (file) => {
  git(repository.gitDir, "config", "extensions.worktreeConfig", "true");
  for (const value of ["input", "false"]) {
    git(repository.gitDir, "config", "--file", join(repository.gitDir, file), "core.autocrlf", value);
    expect(await readCheckoutSettings(repository)).toMatchObject({ autocrlf: value });
  }
});

test("what is written to a file that the user's own configuration includes is seen, too; the repository's includes are not read", async () => {
  const included = join(scratch.path, "included");
  const before = process.env["HOME"];
  process.env["HOME"] = scratch.path;
  try {
    writeFileSync(join(scratch.path, ".gitconfig"), `[include]\n\tpath = ${included}\n`);
    for (const value of ["input", "false"]) {
      writeFileSync(included, `[core]\n\tautocrlf = ${value}\n`);
      expect(await readCheckoutSettings(repository)).toMatchObject({ autocrlf: value });
    }
    const other = join(scratch.path, "other");
    writeFileSync(other, "[core]\n\tautocrlf = true\n");
    git(repository.gitDir, "config", "include.path", other);
    expect(await readCheckoutSettings(repository)).toMatchObject({ autocrlf: "false" });
  } finally {
    process.env["HOME"] = before;
  }
});

test("nothing that names a program or holds a secret is read", async () => {
  git(repository.gitDir, "config", "core.sshCommand", "touch /tmp/x");
  git(repository.gitDir, "config", "core.eol", "lf");
  expect(Object.keys(await readCheckoutSettings(repository))).not.toContain("sshcommand");
  expect(await readCheckoutSettings(repository)).toMatchObject({ eol: "lf" });
});
