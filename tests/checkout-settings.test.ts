import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readCheckoutSettings } from "../src/sandbox/git/checkout-settings.js";
import { findRepository, type Repository } from "../src/sandbox/git/repository.js";
import { createRepository, createScratch, git, type Scratch } from "./support/scratch.js";

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

test("what is written to a file that the configuration includes is seen, too", async () => {
  const included = join(scratch.path, "included");
  git(repository.gitDir, "config", "include.path", included);
  for (const value of ["input", "false"]) {
    writeFileSync(included, `[core]\n\tautocrlf = ${value}\n`);
    expect(await readCheckoutSettings(repository)).toMatchObject({ autocrlf: value });
  }
});

test("nothing that names a program or holds a secret is read", async () => {
  git(repository.gitDir, "config", "core.sshCommand", "touch /tmp/x");
  git(repository.gitDir, "config", "core.eol", "lf");
  expect(Object.keys(await readCheckoutSettings(repository))).not.toContain("sshcommand");
  expect(await readCheckoutSettings(repository)).toMatchObject({ eol: "lf" });
});
