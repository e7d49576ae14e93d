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

/** `$1` is the new directory, `$2` the one that it replaces. */
const REPLACE = `
set -e
find "$2" -mindepth 1 -delete
cp -R "./$1/." "$2/"
rm -rf "./$1"
`;

/**
 * Gives the inside a new git directory in place of one that it has broken; gives why that failed, if it did. Written by the
 * inside itself: the host opens no path in a directory that the inside could write.
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
    // Without an index: whoever replaced the files makes one that belongs to them.
    await writeBorrowingGit({ repository, branch, baseSha: sha, dir });
    await driver.importTree(packDirectory(borrowingGitDir(dir)), join(workDir, name));
    return await runInside(driver, ["/bin/sh", "-c", REPLACE, "git", name, INSIDE_GIT]);
  } finally {
    await driver.remove(join(workDir, name), { recursive: true });
    await removeOwnTree(dir);
  }
}
