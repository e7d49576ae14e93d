import { SandboxError } from "../errors.js";
import type { Resource } from "../record.js";
import { removeTree } from "../remove-tree.js";
import { removeUnfinishedBase } from "./base-cache.js";
import { removeCgroup } from "./remove-cgroup.js";
import { removeUnfinishedSnapshots } from "./remove-snapshot.js";
import { removeBranch, removeWorktree } from "./remove-worktree.js";

/** Takes away one resource of a local sandbox. One that is not there, or was never made, is no error. */
export async function removeResource(resource: Resource): Promise<void> {
  const text = (field: string): string => {
    const value = (resource as Readonly<Record<string, unknown>>)[field];
    if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
    throw new SandboxError("tampered", `A resource of kind "${resource.kind}" has no usable "${field}"`);
  };
  switch (resource.kind) {
    case "directory":
      return await removeTree(text("path"));
    case "worktree":
      return await removeWorktree({ repo: text("repo"), path: text("path"), name: text("name") });
    case "branch":
      return await removeBranch({ repo: text("repo"), name: text("name"), sha: text("sha"), mark: text("mark") });
    case "base":
      return; // shared with other sandboxes; the cache has its own rules
    case "base-draft":
      return await removeUnfinishedBase({ repo: text("repo"), dir: text("dir"), draft: text("draft") });
    case "cgroup":
      return await removeCgroup(text("path"));
    case "snapshots":
      return await removeUnfinishedSnapshots(text("sandbox"), resource["repo"] === "" ? undefined : text("repo"));
    default:
      throw new SandboxError("unsupported", `The local backend has no resources of kind "${resource.kind}"`);
  }
}
