import { readdirSync, readFileSync } from "node:fs";
import { readQuietly } from "./token-watch.js";

/** A process as the host sees it. */
export interface HostProcess {
  pid: number;
  parent: number;
  argv: string[];
  /** Real, effective, saved and file system user id. */
  uids: number[];
}

/**
 * The live processes of the whole host with this text in an argument, as a word of its own: `place1-12` is not in
 * `place1-123`, which may be another run's. A marker that ends with `-` or `/` is a prefix.
 */
export function processesWith(marker: string): HostProcess[] {
  const found: HostProcess[] = [];
  const bytes = Buffer.from(marker).toString("latin1");
  const word = new RegExp(`(?<!\\w)${bytes.replaceAll(/[^\w/-]/g, "\\$&")}${/\w$/.test(bytes) ? "(?!\\w)" : ""}`);
  for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!word.test(readQuietly(`/proc/${entry}/cmdline`))) continue;
      const argv = readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0").slice(0, -1);
      const status = readFileSync(`/proc/${entry}/status`, "utf8");
      const field = (name: string): number[] =>
        (new RegExp(`^${name}:\\s+(.*)$`, "m").exec(status)?.[1] ?? "").split(/\s+/).map(Number);
      found.push({ pid: Number(entry), parent: field("PPid")[0] ?? 0, argv, uids: field("Uid") });
    } catch {
      // It ended meanwhile.
    }
  }
  return found;
}
