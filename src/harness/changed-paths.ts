import { createHash } from "node:crypto";
import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../sandbox/types.js";

/** Every path that differs from the start, the old names of renamed files too. */
export async function changedPaths(sandbox: Sandbox): Promise<string[]> {
  const { files, patch } = await sandbox.changes();
  const paths = new Set(files.map(({ path }) => path));
  if (files.some(({ status }) => status === "renamed")) {
    for (const [, name = ""] of patch.matchAll(/^rename from (.+)$/gm)) paths.add(unquotePath(name));
  }
  return [...paths];
}

/** Differs between two states of the files; undefined where the backend cannot report changes. */
export async function fingerprint(sandbox: Sandbox): Promise<string | undefined> {
  try {
    const { patch, files } = await sandbox.changes();
    return createHash("sha256").update(JSON.stringify(files)).update(patch).digest("hex");
  } catch (error) {
    if (error instanceof SandboxError && error.code === "unsupported") return undefined;
    throw error;
  }
}

/** Git writes a name with unusual bytes in quotes, the bytes as octal numbers. */
function unquotePath(name: string): string {
  if (!name.startsWith('"') || !name.endsWith('"')) return name;
  const escapes: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11, '"': 34, "\\": 92 };
  const bytes: number[] = [];
  for (const [whole, octal, letter] of name.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/gs)) {
    if (octal !== undefined) bytes.push(Number.parseInt(octal, 8));
    else if (letter !== undefined) bytes.push(escapes[letter] ?? letter.charCodeAt(0));
    else bytes.push(...Buffer.from(whole));
  }
  return Buffer.from(bytes).toString("utf8");
}
