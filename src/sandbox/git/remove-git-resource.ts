import type { Resource } from "../../../contracts/backend.js";
import type { PendingRemoval } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import { removeUnfinishedSnapshots } from "./snapshot/remove-snapshot.js";
import { removeUnfinishedBase } from "./source/base-cache.js";
import { removeBranch, removeWorktree } from "./worktree/remove-worktree.js";

/**
 * Takes away one resource that belongs to a repository, and the directories `beside` it when that takes no longer. Gives false when it is of
 * another kind. One that is gone is no error.
 */
export async function removeGitResource(
  resource: Resource,
  beside: readonly string[] = [],
): Promise<boolean | PendingRemoval> {
  const text = (field: string): string => textOf(resource, field);
  switch (resource.kind) {
    case "worktree":
      return await removeWorktree({ repo: text("repo"), path: text("path"), name: text("name"), beside });
    case "branch":
      await removeBranch({ repo: text("repo"), name: text("name"), sha: text("sha"), mark: text("mark") });
      return true;
    case "base":
    case "clone":
      return true; // shared with other sandboxes; the cache has its own rules
    case "base-draft":
      await removeUnfinishedBase({ repo: text("repo"), dir: text("dir"), draft: text("draft") });
      return true;
    case "snapshots":
      await removeUnfinishedSnapshots(text("sandbox"), resource["repo"] === "" ? undefined : text("repo"));
      return true;
    default:
      return false;
  }
}

/** A field of a resource that names something; `tampered` when it does not. */
export function textOf(resource: Resource, field: string): string {
  const value = (resource as Readonly<Record<string, unknown>>)[field];
  if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
  throw new SandboxError("tampered", `A resource of kind "${resource.kind}" has no usable "${field}"`);
}
