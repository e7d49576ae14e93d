import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { ownFile } from "../util/own-version.js";

/** Whether a package can be found from here, without loading it: that takes some of them seconds. */
export function isInstalled(name: string): boolean {
  for (let folder = dirname(ownFile()); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "node_modules", name, "package.json"))) return true;
    if (folder === dirname(folder)) return false;
  }
}
