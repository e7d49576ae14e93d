import { posix } from "node:path";
import type { FileEntry, ListOptions } from "@mastra/core/workspace";
import type { Sandbox } from "../../../contracts/sandbox.js";
import type { DirectoryEntry } from "../../../contracts/types.js";

/** As deep as Mastra's own file system goes if nobody says otherwise. */
const MAX_DEPTH = 100;

/** Lists a directory as Mastra does: names below it, what a link leads to, and with `recursive` everything beneath. Links are not descended into. */
export async function listEntries(
  sandbox: Sandbox,
  directory: string,
  { recursive = false, extension, maxDepth = MAX_DEPTH }: ListOptions,
): Promise<FileEntry[]> {
  const wanted = extension === undefined ? undefined : [extension].flat();
  const list = async (place: string, prefix: string, depth: number): Promise<FileEntry[]> => {
    const found: FileEntry[] = [];
    for (const each of await sandbox.listDirectory(place, { details: true })) {
      const inside = posix.join(place, each.name);
      const entry = await toEntry(sandbox, inside, each);
      if (entry.type === "file" && !isWanted(each.name, wanted)) continue;
      found.push({ ...entry, name: `${prefix}${each.name}` });
      if (recursive && each.type === "directory" && depth > 0) {
        found.push(...(await list(inside, `${prefix}${each.name}/`, depth - 1)));
      }
    }
    return found;
  };
  return await list(directory, "", maxDepth);
}

async function toEntry(sandbox: Sandbox, inside: string, { name, type, size }: DirectoryEntry): Promise<FileEntry> {
  if (type === "directory") return { name, type };
  if (type !== "symlink") return { name, type: "file", size };
  // A link that leads nowhere, or out, is a file to Mastra.
  const target = await sandbox.stat(inside, { follow: true }).catch(() => null);
  return { name, type: target?.type === "directory" ? "directory" : "file", isSymlink: true };
}

function isWanted(name: string, extensions: readonly string[] | undefined): boolean {
  const own = posix.extname(name);
  return extensions === undefined || extensions.some((each) => each === own || each === own.slice(1));
}
