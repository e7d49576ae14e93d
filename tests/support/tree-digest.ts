import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** Every entry below a directory with its mode, owner and content, to compare before and after. */
export function treeDigest(root: string, path = ""): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(join(root, path))) {
    const below = join(path, name);
    const at = join(root, below);
    const stat = lstatSync(at);
    const content = stat.isFile() ? hash(readFileSync(at)) : stat.isSymbolicLink() ? readlinkSync(at) : "";
    found[below] = `${stat.mode.toString(8)} ${stat.uid}:${stat.gid} ${content}`;
    if (stat.isDirectory()) Object.assign(found, treeDigest(root, below));
  }
  return found;
}

function hash(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
