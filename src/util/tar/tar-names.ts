import { codedError } from "../coded-error.js";

const MAX_PATH_BYTES = 4095;
const MAX_NAME_BYTES = 255;

/**
 * Checks a name of an archive and returns it relative to the root, without `.` and empty parts; "" is the root. Names are
 * bytes as Latin-1 strings.
 */
export function toConfinedName(name: string): string {
  assertPathBytes(name);
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (name.startsWith("/") || parts.includes("..")) throw escapes(name);
  // Names that lead outside only on Windows.
  if (process.platform === "win32" && /[\\:]/.test(name)) throw escapes(name);
  if (parts.some((part) => part.length > MAX_NAME_BYTES)) throw invalid(name, "has a part over 255 bytes");
  return parts.join("/");
}

/** Throws for a name that no system call accepts: empty, with a NUL byte, or over 4095 bytes. */
export function assertPathBytes(name: string): void {
  if (name === "") throw invalid(name, "is empty");
  if (name.includes("\0")) throw invalid(name, "contains a NUL byte");
  if (name.length > MAX_PATH_BYTES) throw invalid(name, "is over 4095 bytes");
}

/** The error for a name or link that leads out of the root. */
export function escapes(name: string): Error {
  return codedError("path_confinement", `path confinement violation: ${toText(name)} is outside base directory`);
}

/** Decodes a name for messages. */
export function toText(name: string): string {
  return Buffer.from(name, "latin1").toString();
}

function invalid(name: string, why: string): Error {
  return codedError("invalid_path", `path in tar archive ${why}: ${JSON.stringify(toText(name).slice(0, 200))}`);
}
