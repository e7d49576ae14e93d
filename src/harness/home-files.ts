import { join } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import { userHome } from "../machine/user-home.js";
import { readRegularFile } from "../util/beneath.js";
import { realPathOf } from "../util/repository-of.js";
import { registerSecret } from "../util/sanitize.js";
import { isSecretName } from "../util/secret-forms.js";
import type { Blueprint } from "./types.js";

type HomeFiles = Blueprint["sandbox"]["home"];

/** Larger files are not settings, and no logins. */
const MAX_BYTES = 1024 * 1024;
const SHORTEST_SECRET = 8;

/** The files of this machine among those for a HOME. */
export function hostFilesOf(home: HomeFiles = {}): { path: string; file: string }[] {
  return Object.entries(home).flatMap(([path, from]) => (typeof from === "string" ? [] : [{ path, file: from.file }]));
}

/** A path of the user's, with their home directory in the place of `~`. */
export function hostPathOf(file: string): string {
  return file.startsWith("~/") ? join(userHome(), file.slice(2)) : file;
}

/** Reads all files for a HOME. What a file of this machine calls a secret is hidden from then on, in everything that this process prints and writes. */
export function readHomeFiles(home: HomeFiles = {}): Record<string, string | Uint8Array> {
  const all = Object.entries(home).map(([path, from]) => [
    path,
    typeof from === "string" ? from : read(path, from.file),
  ]);
  return Object.fromEntries(all);
}

function read(path: string, file: string): Buffer {
  const name = `sandbox.home["${path}"].file`;
  try {
    const content = readRegularFile(realPathOf(hostPathOf(file)), MAX_BYTES, file);
    for (const secret of secretsIn(content.toString("utf8"))) registerSecret(secret);
    return content;
  } catch (error) {
    if (error instanceof SandboxError) {
      throw new SandboxError("invalid_argument", `Invalid ${name}: ${error.message}`, { cause: error });
    }
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : `it can't be read (${code})`;
    throw new SandboxError("not_found", `Invalid ${name} "${file}": ${why}`, {
      cause: error,
      hint: "name a file that exists on this machine, or leave it out",
    });
  }
}

/** The values in JSON whose names say that they are secret. */
function secretsIn(text: string): string[] {
  const found: string[] = [];
  try {
    JSON.parse(text, (name, value: unknown) => {
      if (typeof value === "string" && value.length >= SHORTEST_SECRET && isSecretName(name)) found.push(value);
      return value;
    });
  } catch {
    // It is no JSON.
  }
  return found;
}
