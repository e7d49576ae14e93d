import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { packDirectory } from "../../../util/tar/tar-pack.js";
import {
  borrowingGitDir,
  INSIDE_GIT,
  type LiveTree,
  runInside,
  scratchPath,
  type TreeBase,
  writeBorrowingGit,
} from "../../git.js";

/** `$1` is the new directory, `$2` the one it replaces. */
const REPLACE = `
set -e
find "$2" -mindepth 1 -delete
cp -R "./$1/." "$2/"
rm -rf "./$1"
`;

/**
 * Gives the sandbox a new git directory in place of a broken one; returns why that failed, if it did. A command in the sandbox writes it: the host
 * opens no path in a directory that commands can write to.
 */
export async function rebuildSandboxGit(
  id: string,
  base: TreeBase,
  driver: LiveTree["driver"],
): Promise<string | undefined> {
  const { workDir } = driver;
  const dir = scratchPath(id, "git");
  const name = `.glovebox-${randomBytes(8).toString("hex")}`;
  try {
    const { repository, branch, sha } = base;
    // Without an index: the code that replaced the files makes one that fits them.
    await writeBorrowingGit({ repository, branch, baseSha: sha, dir });
    await driver.importTree(packDirectory(borrowingGitDir(dir)), join(workDir, name));
    return await runInside(driver, ["/bin/sh", "-c", REPLACE, "git", name, INSIDE_GIT]);
  } finally {
    await driver.remove(join(workDir, name), { recursive: true });
    await removeOwnTree(dir);
  }
}
