import { constants } from "node:fs";
import { link, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import { removeTree } from "../../../machine/remove-tree.js";
import {
  copyIfThere,
  filterSections,
  makeScratchDirectory,
  type Repository,
  readCheckoutSettings,
  writeGitDirectory,
} from "../repository.js";
import { INDEX_OF_BASE } from "./jailed-commit.js";
import type { RunJailedGit } from "./jailed-git.js";

/** Makes the directory of a store, in place of any leftover, and starts the jail that will use it. */
export async function makeStore(store: string, jail?: RunJailedGit): Promise<void> {
  await removeTree(store);
  await makeScratchDirectory(store);
  jail?.start?.();
}

/** Makes a store an empty git directory with the settings that decide how files are stored. */
export async function fillStore(
  store: string,
  repository: Repository | undefined,
  filters: readonly string[] = [],
): Promise<void> {
  const settings = repository === undefined ? {} : await readCheckoutSettings(repository);
  // The jail sees other owners and inodes. The change time, which nobody can set, still counts.
  const core = { bare: "false", checkstat: "minimal", ...settings };
  const own = { core, gc: { auto: "0" }, maintenance: { auto: "false" }, fastimport: { unpacklimit: "0" } };
  const config = { ...own, ...(await filterSections(filters)) };
  await writeGitDirectory(store, { head: "refs/heads/none", config, repository });
}

/** Gives a store two copies of the index that the host made; false when there is none. */
export async function copyIndex(index: string | undefined, store: string): Promise<boolean> {
  const copy = join(store, INDEX_OF_BASE);
  if (index === undefined || !(await copyIfThere(index, copy))) return false;
  // Git never writes into an index, it replaces the file.
  await link(copy, join(store, "index"));
  return true;
}

/** Copies the pack to where the jail can't write. Anything in the store may come from the sandbox. */
export async function takePackOut(from: string, to: string, maxBytes: number): Promise<void> {
  const source = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error) => {
    throw new SandboxError("tampered", "The jail left no pack", { cause: error });
  });
  try {
    const { size } = await source.stat().then((found) => (found.isFile() ? found : { size: 0 }));
    if (size === 0) throw new SandboxError("tampered", "The pack of the jail is empty or not a regular file");
    if (size > maxBytes) throw new SandboxError("limit_exceeded", `The snapshot has ${size} bytes, over ${maxBytes}`);
    await rm(to, { force: true });
    const target = await open(to, "wx", 0o600);
    await pipeline(source.createReadStream({ end: size - 1, autoClose: false }), target.createWriteStream());
  } finally {
    await source.close();
  }
}
