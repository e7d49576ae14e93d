import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { failpoint } from "../../../machine/failpoint.js";
import { encodeTarMember, TAR_BLOCK } from "../../../util/tar/tar-encode.js";
import { type LiveTree, mustRunInside } from "../live-tree.js";

/**
 * Removes everything but the staged files, then moves those up. Runs in the sandbox, because names there need not be text, and nothing it does can
 * lead out. `$1` is the stage, `$2` the name that stays.
 */
const SWAP = `
set -e
remove() { find . -mindepth 1 -maxdepth 1 ! -name "$1" ! -name "$2" -exec rm -rf -- {} +; }
if ! remove "$1" "$2" 2>/dev/null; then
  find . -type d ! -perm -700 -exec chmod u+rwx {} + 2>/dev/null || :
  remove "$1" "$2"
fi
find "./$1" -mindepth 1 -maxdepth 1 -exec sh -c 'mv -- "$@" .' sh {} +
rmdir "./$1"
`;

/** Replaces all files of a sandbox by those of the archives. A failure before all are unpacked changes nothing. */
export async function replaceFiles(
  { driver }: Pick<LiveTree, "driver">,
  archives: readonly AsyncIterable<Uint8Array>[],
  opts: { keepGit: boolean },
): Promise<void> {
  const name = `.glovebox-${randomBytes(8).toString("hex")}`;
  const stage = join(driver.workDir, name);
  try {
    await driver.importTree(emptyTar(), stage);
    for (const archive of archives) await driver.importTree(archive, stage);
    await failpoint("restore.staged");
    await mustRunInside(driver, ["/bin/sh", "-c", SWAP, "restore", name, opts.keepGit ? ".git" : name]);
    await failpoint("restore.filled");
  } catch (error) {
    await driver.remove(stage, { recursive: true }).catch(() => undefined);
    throw error;
  }
}

async function* emptyTar(): AsyncGenerator<Uint8Array> {
  yield Buffer.concat([
    encodeTarMember({ path: Buffer.from("."), type: "directory", mode: 0o755, mtime: 0, size: 0 }),
    Buffer.alloc(2 * TAR_BLOCK),
  ]);
}
