import { SandboxError } from "../../../../contracts/errors.js";
import { countPackObjects } from "../fast-commit.js";
import { gitError, type RunGit } from "../host.js";

/** As many objects as `git fetch` would store one by one. */
const UNPACK_LIMIT = 100;

/**
 * Stores the objects of a pack, each one checked. Not by `git fetch` from a bundle: before 2.46 that ignores
 * `transfer.fsckObjects`. Durable ones outlive a power loss, which git does not care for with single objects.
 */
export async function importPack(git: RunGit, pack: string, isDurable = false): Promise<void> {
  const isSmall = (await countPackObjects(pack)) < UNPACK_LIMIT;
  const args = isSmall ? ["unpack-objects", "-q", "--strict"] : ["index-pack", "--stdin", "--strict"];
  const config = isDurable ? { config: { "core.fsync": "loose-object" } } : {};
  const result = await git(args, { ...config, input: pack, interruptible: true });
  if (result.exitCode === 0) return;
  const error = gitError(args, result);
  throw error.code === "internal" ? new SandboxError("tampered", error.message, { cause: error }) : error;
}
