import { readFileSync } from "node:fs";

/** Linux's numbers of the capabilities that decide how a sandbox is opened. */
const CAPABILITIES = { SETFCAP: 31, SYS_ADMIN: 21 } as const;

/**
 * What this process may do. `root` may mount. `bare-root` is user 0 of the machine without that capability, as in most containers. Everybody else is
 * a `user`, also a root that a user namespace maps to another user.
 */
export type Standing = "user" | "root" | "bare-root";

/** What was found out about root; a process that leaves root is a user from then on. */
let ofRoot: Standing | undefined;

/** The standing of this process. */
export function standing(): Standing {
  if (process.getuid?.() !== 0) return "user";
  ofRoot ??= standingOfRoot(read("/proc/self/status"), read("/proc/self/uid_map"));
  return ofRoot;
}

/** The standing of user 0, by `status` and `uid_map` of its process. */
export function standingOfRoot(status: string, uidMap: string): Standing {
  if (isCapable("SYS_ADMIN", status)) return "root";
  return outsideOfRoot(uidMap) === 0 ? "bare-root" : "user";
}

/** Whether a process has a capability, by its `status`. */
export function isCapable(name: keyof typeof CAPABILITIES, status: string = read("/proc/self/status")): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return ((BigInt(`0x${effective}`) >> BigInt(CAPABILITIES[name])) & 1n) === 1n;
}

/** The user that user 0 is in the user namespace above. */
function outsideOfRoot(uidMap: string): number {
  const row = uidMap
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .find(([inside]) => inside === 0);
  return row?.[1] ?? 0;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
