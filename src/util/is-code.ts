import { extname } from "node:path";

/** The endings of files that are run as JavaScript or TypeScript. Node would also run a file without any. */
export const CODE: readonly string[] = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"];

/** Whether the ending of a file says that it is code. */
export function isCode(path: string): boolean {
  return CODE.includes(extname(path));
}
