import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SandboxError } from "../../contracts/errors.js";

/** The version of the package. */
export function ownVersion(): string {
  return manifestIn(packageRoot())?.version as string;
}

/** The file that this code is in: one of the package, or what a bundler made of it. CommonJS has no `import.meta.url`. */
export function ownFile(): string {
  return import.meta.url === undefined ? __filename : fileURLToPath(import.meta.url);
}

/** The directory of the package that this file is a part of or, where a bundler took it out, of the one installed beside. */
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

/** Above a bundle can be folders that everybody writes to, as `/tmp` is: what somebody else put there is not run. */
function isOfOwner(path: string, file: string): boolean {
  return [0, process.getuid?.(), statSync(file).uid].includes(statSync(path).uid);
}

function manifestIn(folder: string): { name?: string; version?: string } | undefined {
  const path = join(folder, "package.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}
