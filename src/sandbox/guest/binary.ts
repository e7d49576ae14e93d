import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { packageRoot } from "../../util/own-version.js";
import { invalidArgument } from "../../util/schema.js";

/** How the header of a program names its machine. */
const MACHINES: Readonly<Record<string, number>> = { x64: 62, arm64: 183 };
const found = new Map<string, string>();
let chosen: string | undefined;

/**
 * Says where the program is that runs in every sandbox, for a bundle without the files of the package: the file, or a directory
 * that has it for several machines as `guest/bin` of the package has. Wins over the variable `GLOVEBOX_GUEST`.
 *
 * @throws `invalid_argument` for a relative path.
 */
export function setGuestPath(path: string): void {
  chosen = assertAbsolute("path of the guest", path);
}

/** Path of the guest for this machine, or for one of another kind. */
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
    throw new SandboxError("missing_dependency", `the guest for linux-${arch} is not here: ${path}`, {
      cause,
      hint: isDenied ? `chmod +x ${path}` : fix,
    });
  }
  if (given === undefined || readFileSync(path)[18] === MACHINES[arch]) return path;
  throw new SandboxError("invalid_argument", `The guest ${path} is no program for linux-${arch}`, {
    hint: "give the directory that has one for each machine, as guest/bin of the package has",
  });
}

function assertAbsolute(name: string, path: string): string {
  if (typeof path !== "string" || !isAbsolute(path)) throw invalidArgument(name, "an absolute path", path);
  return path;
}
