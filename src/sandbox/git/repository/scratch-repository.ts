import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { removeOwnTree } from "../../../machine/remove-tree.js";
import { type HostGitOptions, inStore, NO_CONFIG } from "../host.js";
import { makeScratchDirectory, writeGitDirectory } from "./git-directory.js";
import type { Repository } from "./repository.js";

/** Memory that git may use for one object. The sandbox wrote it: a few bytes can unpack to many gigabytes. */
const ALLOC_LIMIT = "1g";

/** Runs something on a scratch repository, which reads the objects of the source, has none of its settings, and is seen by no sandbox. */
export async function withScratchRepository<T>(
  path: string,
  repository: Repository | undefined,
  use: (store: HostGitOptions & { gitDir: string }) => Promise<T>,
): Promise<T> {
  const objects = repository?.objects ?? "";
  if (/[\n"]/.test(objects)) {
    throw new SandboxError("unsupported", `The path ${JSON.stringify(objects)} cannot be borrowed from`);
  }
  try {
    await makeScratchDirectory(path);
    await writeGitDirectory(path, { head: "refs/heads/none", config: { core: { bare: "true" } }, repository });
    if (objects !== "") await writeFile(join(path, "objects", "info", "alternates"), `${objects}\n`);
    const env = { ...NO_CONFIG, GIT_ALLOC_LIMIT: ALLOC_LIMIT };
    return await use({ ...inStore(path), gitDir: path, env });
  } finally {
    await removeOwnTree(path);
  }
}
