import { isUtf8 } from "node:buffer";
import { codedError } from "../coded-error.js";

const REPLACEMENT = Buffer.from("\uFFFD");

/**
 * A path of raw bytes in a form that every runtime takes. Deno knows names in UTF-8 only, and some of its calls end the process on others: there
 * they are `unsupported`.
 */
export function toPath(bytes: Buffer): string | Buffer {
  if (isUtf8(bytes)) return bytes.toString();
  if (isDeno()) throw notUtf8(bytes);
  return bytes;
}

/** The names in a directory. Deno reads those that are not UTF-8 wrongly, and their files would be missed: there they are `unsupported`. */
export function assertReadNames(names: readonly Buffer[]): void {
  const wrong = isDeno() ? names.find((name) => name.includes(REPLACEMENT)) : undefined;
  if (wrong !== undefined) throw notUtf8(wrong);
}

function isDeno(): boolean {
  return process.versions["deno"] !== undefined;
}

function notUtf8(path: Buffer): Error {
  return codedError("unsupported", `Deno can't use a name that is not UTF-8: ${path.toString()}`);
}
