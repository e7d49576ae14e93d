import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SandboxError } from "../../../contracts/errors.js";

const found = new Map<string, string>();

/** Path of the guest for this machine, or for one of another kind. */
export function guestBinary(arch: string = process.arch): string {
  const known = found.get(arch) ?? findGuest(arch);
  found.set(arch, known);
  return known;
}

function findGuest(arch: string): string {
  const name = join("guest", "bin", `linux-${arch}`, "glovebox-guest");
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json")) && dirname(directory) !== directory)
    directory = dirname(directory);
  const path = join(directory, name);
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new SandboxError("missing_dependency", `the guest for linux-${arch} is not here: ${path}`, {
      cause,
      hint: "run `npm run build` in the checkout",
    });
  }
  return path;
}
