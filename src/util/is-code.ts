import { extname } from "node:path";

/** The extensions of files that are run as code. Node itself would also run a file without one. */
export const CODE: readonly string[] = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"];

/** Whether a file has an extension of code. */
export function isCode(path: string): boolean {
  return CODE.includes(extname(path));
}
