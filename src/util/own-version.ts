import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SandboxError } from "../../contracts/errors.js";

/** The version of this package. */
export function ownVersion(): string {
  return manifestIn(packageRoot())?.version as string;
}

/** The file of this code: in the package, or in a bundle. CommonJS has no `import.meta.url`. */
export function ownFile(): string {
  return import.meta.url === undefined ? __filename : fileURLToPath(import.meta.url);
}

/** The package's directory: the one this file is in or, for a bundle, the package installed next to it. */
export function packageRoot(): string {
  const file = ownFile();
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (manifestIn(folder)?.name === "glovebox") return folder;
    const beside = join(folder, "node_modules", "glovebox");
    if (manifestIn(beside)?.name === "glovebox" && isOfOwner(beside, file)) return beside;
    if (folder === dirname(folder)) break;
  }
  throw new SandboxError("missing_dependency", `The files of the package glovebox are not beside the bundle ${file}`, {
    hint:
      'copy node_modules/glovebox/guest/bin and add the line setGuestPath("/absolute/path/of/the/copy"), or set GLOVEBOX_GUEST to it; ' +
      'for blueprints keep the package out of the bundle (esbuild: external: ["glovebox"]) and install it beside',
  });
}

/** A parent of a bundle may be writable by everybody, as `/tmp` is: never run what another user put there. */
function isOfOwner(path: string, file: string): boolean {
  return [0, process.getuid?.(), statSync(file).uid].includes(statSync(path).uid);
}

function manifestIn(folder: string): { name?: string; version?: string } | undefined {
  const path = join(folder, "package.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}
