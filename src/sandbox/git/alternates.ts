import { existsSync, readFileSync, realpathSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { SandboxError } from "../errors.js";
import type { JailBind } from "../jail/jail.js";

const DEEPEST = 5;

/**
 * The object stores that a store borrows from, and those that they borrow from, as the paths that git will look for.
 *
 * They must appear inside at these very paths, because that is what the read-only files of the store say.
 */
export function findAlternates(objects: string): string[] {
  const found = new Set<string>();
  let level = [objects];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEEPEST) throw refusal(objects, "its alternates are nested too deeply");
    const next: string[] = [];
    for (const store of level) {
      for (const path of listAlternates(store)) {
        if (found.has(path)) continue;
        found.add(path);
        next.push(path);
      }
    }
    level = next;
  }
  return [...found];
}

/** What shows them to a jail at these paths. Where one of them is a link, what it leads to is shown. */
export function alternateBinds(objects: string): JailBind[] {
  return findAlternates(objects).map((path) => ({ source: realpathSync(path), target: path }));
}

function listAlternates(objects: string): string[] {
  const text = readIfThere(join(objects, "info", "alternates"));
  const paths = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  for (const path of paths) {
    if (!isAbsolute(path) || path.startsWith('"'))
      throw refusal(objects, `the alternate ${path} is not an absolute path`);
    if (!existsSync(path)) throw refusal(objects, `the alternate ${path} does not exist`);
  }
  return paths;
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function refusal(objects: string, why: string): SandboxError {
  return new SandboxError("unsupported", `The object store ${objects} cannot be shown inside: ${why}`, {
    hint: "Make the repository independent: git repack -a -d && rm .git/objects/info/alternates",
  });
}
