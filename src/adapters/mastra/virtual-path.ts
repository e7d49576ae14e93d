import { posix } from "node:path";
import { mastra } from "./load-mastra.js";

/**
 * The path in the sandbox that Mastra means. Its `/` is the base directory; what already starts with that directory, as commands print it, is taken
 * as it is. A path that leads out is refused.
 */
export function toSandboxPath(base: string, path: string): string {
  const isWhole = path === base || path.startsWith(`${base}/`);
  const resolved = posix.join(isWhole ? "/" : base, path);
  if (resolved !== base && !resolved.startsWith(`${base}/`)) throw new mastra.PermissionError(path, "access");
  return resolved.length > base.length && resolved.endsWith("/") ? resolved.slice(0, -1) : resolved;
}
