import { SandboxError } from "../errors.js";
import { removeGitResource, textOf } from "../git/remove-git-resource.js";
import type { Resource } from "../record.js";
import { removeTree } from "../remove-tree.js";
import { removeCgroup } from "./remove-cgroup.js";

/** Takes away one resource of a local sandbox. One that is not there, or was never made, is no error. */
export async function removeResource(resource: Resource): Promise<void> {
  if (resource.kind === "directory") return await removeTree(textOf(resource, "path"));
  if (resource.kind === "cgroup") return await removeCgroup(textOf(resource, "path"));
  if (await removeGitResource(resource)) return;
  throw new SandboxError("unsupported", `The local backend has no resources of kind "${resource.kind}"`);
}
