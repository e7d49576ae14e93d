import { existsSync } from "node:fs";
import { join } from "node:path";
import { isBranchName } from "../../../util/git/branch-name.js";
import { lookAt, readUntrustedFile } from "./untrusted-file.js";

const SHA = /^([0-9a-f]{40}|[0-9a-f]{64})\n$/;
const MAX_PACKED_REFS = 256 << 20;

/** Reads HEAD of a git directory from its file: a branch, or a commit. */
export function readHeadFile(gitDir: string): { ref?: string; sha?: string } {
  const head = readSmall(join(gitDir, "HEAD"));
  const ref = /^ref: (refs\/[^\n]+)\n$/.exec(head)?.[1];
  const sha = SHA.exec(head)?.[1];
  return { ...(ref !== undefined && { ref }), ...(sha !== undefined && { sha }) };
}

/**
 * Reads the commit of `HEAD` or a ref as git does: first from the ref's own file, then from `packed-refs`. Undefined when there is none, or
 * when only git can tell. Saves a git process, which takes longer than everything else that an overlay needs.
 */
export async function readRefFile(gitDir: string, name: string): Promise<string | undefined> {
  if (name !== "HEAD") return readRef(gitDir, name);
  const { ref, sha } = readHeadFile(gitDir);
  return ref?.startsWith("refs/heads/") === true ? readRef(gitDir, ref) : sha;
}

/**
 * Whether a ref that only Glovebox writes may be there, or the lock of one. A repository that git can't read, or with a link on the way to the ref,
 * has none: Glovebox could not have written it.
 */
export function mayHaveRef(gitDir: string, ref: string): boolean {
  // Only git can tell.
  if (existsSync(join(gitDir, "reftable"))) return true;
  const parts = ref.split("/");
  const above = parts.slice(1).map((_, at) => join(gitDir, ...parts.slice(0, at + 1)));
  const hasWay = above.every((path) => lookAt(path)?.isDirectory() === true);
  if (hasWay && [ref, `${ref}.lock`].some((name) => lookAt(join(gitDir, name)) !== undefined)) return true;
  try {
    return readUntrustedFile(join(gitDir, "packed-refs"), MAX_PACKED_REFS)?.includes(` ${ref}\n`) === true;
  } catch {
    return false;
  }
}

function readRef(gitDir: string, ref: string): string | undefined {
  const [, rest] = /^refs\/[a-z]+\/(.+)$/.exec(ref) ?? [];
  if (!isBranchName(rest)) return undefined;
  const own = readSmall(join(gitDir, ref));
  if (own !== "") return SHA.exec(own)?.[1];
  const shared = readUntrustedFile(join(gitDir, "packed-refs"), MAX_PACKED_REFS)?.toString("latin1") ?? "";
  const end = shared.indexOf(` ${ref}\n`);
  return end === -1 ? undefined : SHA.exec(`${shared.slice(shared.lastIndexOf("\n", end) + 1, end)}\n`)?.[1];
}

function readSmall(path: string): string {
  // Git leaves empty directories where refs were.
  if (lookAt(path)?.isDirectory() === true) return "";
  return readUntrustedFile(path)?.toString("utf8") ?? "";
}
