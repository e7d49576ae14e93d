import type { Resource } from "../../../../contracts/backend.js";
import type { PendingRemoval } from "../../../../contracts/driver.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { removeTrees } from "../../../machine/remove-tree.js";
import { removeGitResource, textOf } from "../../git.js";
import { removeCgroup, removeMount } from "./limits.js";

/** Removes one resource of a local sandbox. No error if it is absent or was never made. */
export async function removeResource(resource: Resource): Promise<void> {
  await (await startRemoval(resource))?.gone;
}

/** Like `removeResource`, but may return while the files of a worktree are still being removed, which takes longest. */
export async function startRemoval(
  resource: Resource,
  beside: readonly string[] = [],
): Promise<PendingRemoval | undefined> {
  if (resource.kind === "directory") await removeTrees([textOf(resource, "path"), ...beside]);
  else if (resource.kind === "cgroup") await removeCgroup(textOf(resource, "path"));
  else if (resource.kind === "mount") await removeMount(textOf(resource, "path"));
  else {
    const removed = await removeGitResource(resource, beside);
    if (typeof removed === "object") return removed;
    if (!removed)
      throw new SandboxError("unsupported", `The local backend has no resources of kind "${resource.kind}"`);
  }
  return undefined;
}
