import { lstat, readdir } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import type { Manifest } from "@openai/agents-core/sandbox";
import { agents, internal, sandboxes } from "./load-agents.js";

/**
 * The host path of a `local_file` or `local_dir`. As in the SDK's own clients it must be below the current directory or below a granted path, and it
 * must not be or contain a link: a manifest may come from a model.
 */
export async function findLocalSource(
  type: "local_file" | "local_dir",
  source: string,
  grants: Manifest["extraPathGrants"],
): Promise<string> {
  const base = process.cwd();
  const path = resolve(base, source);
  const roots = [base, ...grants.map((grant) => resolve(internal.sandboxPathGrantHostPath(grant)))];
  const root = roots.find((each) => internal.isHostPathWithinRoot(each, path));
  if (root === undefined) {
    throw new agents.UserError(
      `${type} source must stay within the local source base directory or manifest.extraPathGrants: ${path} (base: ${base})`,
    );
  }
  await assertNoLink(type, root, path);
  if (type === "local_dir") await assertNoLinkBelow(path);
  return path;
}

/** No part of the way from the root to the source may be a link. */
async function assertNoLink(type: "local_file" | "local_dir", root: string, path: string): Promise<void> {
  const parts = relative(root, path).split("/").filter(Boolean);
  for (const [index] of parts.entries())
    await assertKind(type, join(root, ...parts.slice(0, index + 1)), index === parts.length - 1);
  if (parts.length === 0) await assertKind(type, path, true);
}

async function assertKind(type: "local_file" | "local_dir", path: string, isLast: boolean): Promise<void> {
  const ReadError = type === "local_dir" ? sandboxes.SandboxLocalDirReadError : sandboxes.SandboxLocalFileReadError;
  const found = await lstat(path).catch((cause: unknown) => {
    throw new ReadError(`${type} source can't be read: ${path}`, { cause });
  });
  if (found.isSymbolicLink())
    throw new agents.UserError(`${type} entries do not support symbolic link${isLast ? "s" : " ancestors"}: ${path}`);
  const isFile = isLast && type === "local_file";
  if (isFile ? !found.isFile() : !found.isDirectory()) {
    throw new ReadError(`${type} source is not a ${isFile ? "file" : "directory"}: ${path}`);
  }
}

async function assertNoLinkBelow(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isSymbolicLink()) throw new agents.UserError(`local_dir entries do not support symbolic links: ${path}`);
    if (entry.isDirectory()) await assertNoLinkBelow(path);
  }
}
