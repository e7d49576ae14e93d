import type { Resource } from "../../../contracts/backend.js";
import type { PendingRemoval } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import { removeUnfinishedSnapshots } from "./operations.js";
import { removeUnfinishedBase } from "./source.js";
import { removeBranch, removeWorktree } from "./worktree.js";

/** Removes a resource of a repository, if it still exists, and `beside` it other directories; false for a resource of another kind. */
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
      return true; // shared with other sandboxes; the cache removes them
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

/** A text field of a resource; `tampered` when it is missing or unusable. */
export function textOf(resource: Resource, field: string): string {
  const value = (resource as Readonly<Record<string, unknown>>)[field];
  if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
  throw new SandboxError("tampered", `A resource of kind "${resource.kind}" has no usable "${field}"`);
}
