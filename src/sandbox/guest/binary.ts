import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { packageRoot } from "../../util/own-version.js";
import { invalidArgument } from "../../util/schema.js";

/** The machine number in the header of a program. */
const MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };
const found = new Map<string, string>();
let chosen: string | undefined;

/**
 * Sets the path of the guest, the program that runs in every sandbox, for a bundle without the files of the package: the program itself, or a
 * directory with one for each machine, like `guest/bin` of the package. Overrides the variable `GLOVEBOX_GUEST`.
 *
 * @throws `invalid_argument` for a relative path.
 */
export function setGuestPath(path: string): void {
  chosen = assertAbsolute("path of the guest", path);
}

/** Path of the guest for this machine, or for another architecture. */
export function guestBinary(arch: string = process.arch): string {
  const variable = process.env["GLOVEBOX_GUEST"];
  const given = chosen ?? (variable ? assertAbsolute("GLOVEBOX_GUEST", variable) : undefined);
  const key = `${arch} ${given}`;
  const known = found.get(key) ?? findGuest(arch, given);
  found.set(key, known);
  return known;
}

function findGuest(arch: string, given: string | undefined): string {
  const place = given ?? join(packageRoot(), "guest", "bin");
  const isFile = statSync(place, { throwIfNoEntry: false })?.isFile() === true;
  const path = isFile ? place : join(place, `linux-${arch}`, "glovebox-guest");
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    const isDenied = (cause as NodeJS.ErrnoException).code === "EACCES";
    const fix = given === undefined ? "run `npm run build` in the checkout" : "copy guest/bin of the package there";
    throw new SandboxError("missing_dependency", `The guest for linux-${arch} is missing: ${path}`, {
      cause,
      hint: isDenied ? `chmod +x ${path}` : fix,
    });
  }
  if (given === undefined || readFileSync(path)[18] === MACHINES[arch]) return path;
  throw new SandboxError("invalid_argument", `The guest ${path} is not a program for linux-${arch}`, {
    hint: "set the directory that has one for each machine, like guest/bin of the package",
  });
}

function assertAbsolute(name: string, path: string): string {
  if (typeof path !== "string" || !isAbsolute(path)) throw invalidArgument(name, "an absolute path", path);
  return path;
}
