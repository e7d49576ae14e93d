import { SandboxError } from "../../../../contracts/errors.js";
import { countPackObjects } from "../fast-commit.js";
import { gitError, type RunGit } from "../host.js";

/** As many objects as `git fetch` would store one by one. */
const UNPACK_LIMIT = 100;

/**
 * Stores the objects of a pack, each one checked. Not with `git fetch` from a bundle, which ignores `transfer.fsckObjects` before 2.46. Durable
 * objects survive a power loss; by default git doesn't sync single objects.
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
