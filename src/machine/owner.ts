import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { attempt } from "../util/attempt.js";

/** The process that has a sandbox open, distinct from every other one that ever had its pid. */
export interface Owner {
  /** Changes with each boot of the machine; empty if the system has no such id. */
  readonly bootId: string;
  /** The PID namespace of the pid; empty if the system has none. */
  readonly pidNs: string;
  readonly pid: number;
  /** When the process started, in the system's own unit; empty if unknown. */
  readonly startTime: string;
  /** Distinguishes machines that share a home directory. */
  readonly host?: string;
}

/** `foreign`: its processes can't be seen from here, so nothing of it may be touched. */
export type OwnerState = "alive" | "dead" | "foreign";

let current: Owner | undefined;

/** This process as an owner. */
export function currentOwner(): Owner {
  if (current?.pid !== process.pid) {
    const start = processStart(process.pid);
    current = { ...readPlace(), pid: process.pid, startTime: typeof start === "string" ? start : "" };
  }
  return current;
}

/** Whether an owner is still alive. `dead` only if that is certain. */
export function isOwnerAlive(owner: Owner): OwnerState {
  const here = currentOwner();
  if (owner.host !== undefined && owner.host !== here.host) return "foreign";
  if (owner.bootId !== here.bootId) return owner.bootId !== "" && here.bootId !== "" ? "dead" : "foreign";
  if (owner.pidNs !== here.pidNs) return "foreign";
  const start = processStart(owner.pid);
  if (start === "gone") return "dead";
  if (start === undefined || owner.startTime === "") return "alive";
  return start === owner.startTime ? "alive" : "dead";
}

/** A process, by default this one, as part of a file name: for files that a crash can leave empty. */
export function ownerTag(owner: Owner = currentOwner()): string {
  const { bootId, pidNs, host, pid, startTime } = owner;
  return `${digest(`${bootId} ${pidNs} ${host}`)}-${pid}-${digest(startTime)}`;
}

/** Whether the process that a tag names is certainly dead. */
export function isTagDead(tag: string): boolean {
  const [place, pid = "", start] = tag.split("-");
  if (place !== ownerTag().split("-")[0] || !/^[1-9][0-9]*$/.test(pid)) return false;
  const found = processStart(Number(pid));
  return found === "gone" || (found !== undefined && digest(found) !== start);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function readPlace(): Pick<Owner, "bootId" | "pidNs" | "host"> {
  return {
    bootId: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()) ?? "",
    pidNs: attempt(() => readlinkSync("/proc/self/ns/pid")) ?? "",
    host: attempt(() => readFileSync("/etc/machine-id", "utf8").trim()) || hostname(),
  };
}

/** The start time of a process, `gone` if there is certainly none, undefined if the system doesn't say. */
function processStart(pid: number): string | "gone" | undefined {
  if (!isThere(pid)) return "gone";
  if (process.platform === "linux") return parseStat(attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8")));
  if (process.platform === "win32") return undefined;
  const env = { LC_ALL: "C", TZ: "UTC" };
  const started = attempt(() => execFileSync("/bin/ps", ["-o", "lstart=", "-p", String(pid)], { env, stdio: "pipe" }));
  return started?.toString().trim() || undefined;
}

function parseStat(stat: string | undefined): string | "gone" | undefined {
  // The second field is the program's name in parentheses and may itself contain blanks and parentheses.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields === undefined) return undefined;
  return fields[0] === "Z" || fields[0] === "X" ? "gone" : fields[19];
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
