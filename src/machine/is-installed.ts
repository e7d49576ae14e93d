import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { ownFile } from "../util/own-version.js";

/** Whether a package is installed. Does not load it, which takes seconds for some packages. */
export function isInstalled(name: string): boolean {
  for (let folder = dirname(ownFile()); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "node_modules", name, "package.json"))) return true;
    if (folder === dirname(folder)) return false;
  }
}
