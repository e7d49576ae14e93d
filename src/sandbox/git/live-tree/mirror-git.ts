import { mkdir } from "node:fs/promises";
import { posix } from "node:path";
import { toSandboxError } from "../../../../contracts/errors.js";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { packDirectory } from "../../../util/tar/tar-pack.js";
import type { Driver } from "../../types.js";
import { writePack, writeStandaloneGit } from "../sandbox-git.js";
import type { TreeBase } from "../source.js";
import { type LiveTree, type SandboxGit, scratchPath } from "./live-tree.js";

/** What a mirror needs of a driver. */
export interface MirroredDriver
  extends Readonly<LiveTree["driver"]>,
    Pick<Driver, "id" | "backend" | "onWarning" | "read" | "write" | "exportTree"> {
  /** Freezes all processes of the sandbox while something runs. Absent: not possible. */
  frozen?<T>(work: () => Promise<T>): Promise<T>;
}

/** The standalone git of a sandbox that the host can't look into, reached through the driver. */
export function mirrorGit(base: TreeBase, driver: MirroredDriver): SandboxGit {
  const { repository } = base;
  const place = posix.join(driver.workDir, ".git");
  return {
    async lend(sha, known) {
      const dir = scratchPath(driver.id, "lent");
      try {
        await mkdir(dir, { mode: 0o700 });
        await writePack(repository, [sha, `^${known}`], dir);
        await driver.importTree(packDirectory(dir), posix.join(place, "objects", "pack"));
      } finally {
        await removeOwnTree(dir);
      }
    },
    async advance(from, to) {
      const path = posix.join(place, "refs", "heads", base.branch);
      const [head, ref] = await Promise.all([driver.read(posix.join(place, "HEAD")), driver.read(path)]);
      if (textOf(head) !== `ref: refs/heads/${base.branch}\n` || textOf(ref) !== `${from}\n`) return;
      await driver.write([{ path, content: Buffer.from(`${to}\n`), mode: 0o644 }]);
    },
    async rebuild(head) {
      const dir = scratchPath(driver.id, "git");
      try {
        // Without an index: `setSandboxHead` makes one.
        await writeStandaloneGit({ repository, branch: head?.branch ?? base.branch, sha: head?.sha ?? base.sha, dir });
        await driver.remove(place, { recursive: true });
        await driver.importTree(packDirectory(dir), place);
        return undefined;
      } catch (error) {
        return toSandboxError(error).message;
      } finally {
        await removeOwnTree(dir);
      }
    },
  };
}

function textOf(content: Uint8Array | null): string | undefined {
  return content === null ? undefined : Buffer.from(content).toString("latin1");
}
