import { posix } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { isWithin, systemFolderAround, systemFolderIn } from "../../machine/system-folders.js";
import { invalidArgument } from "../../util/schema.js";

const MAX_BYTES = 1024;
const TEMPORARY = ["/tmp", "/var/tmp"];
/** What Glovebox has in a sandbox for itself. */
const OWN = ["/glovebox", "/.glovebox"];

/** Refuses a place inside that can't be a work directory. */
export function checkWorkDir(workDir: unknown): asserts workDir is string {
  if (typeof workDir !== "string") throw invalidArgument("workDir", "an absolute path", workDir);
  const reason = reasonAgainst(workDir);
  if (reason === undefined) return;
  throw new SandboxError("invalid_argument", `Invalid workDir ${JSON.stringify(workDir)} — ${reason}`, {
    hint: 'name a folder of its own, such as "/workspace"',
  });
}

/** Whether a place inside can be asked for. A backend's own place may be one that can't. */
export function isPossibleWorkDir(workDir: string): boolean {
  return reasonAgainst(workDir) === undefined;
}

function reasonAgainst(workDir: string): string | undefined {
  if (!posix.isAbsolute(workDir)) return "it is not absolute";
  if (workDir.split("/").includes("..")) return 'it has a ".."';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is looked for
  if (/[\x00-\x1f\x7f]/.test(workDir)) return "it has a control character";
  if (Buffer.byteLength(workDir) > MAX_BYTES) return `it has more than ${MAX_BYTES} bytes`;
  const path = posix.resolve(workDir);
  if (path === "/") return "it is the whole file system";
  if (TEMPORARY.includes(path)) return "it is the folder of all temporary files";
  if (/^(\/root|\/home(\/[^/]+)?)$/.test(path)) return "it is a home directory, or contains one";
  if (OWN.some((own) => isWithin(path, own))) return "Glovebox itself uses it";
  const around = systemFolderAround(path);
  if (around !== undefined) return `${around === path ? "it is" : "it is in"} a folder of the system (${around})`;
  const inside = systemFolderIn(path);
  return inside === undefined ? undefined : `it contains a folder of the system (${inside})`;
}
