import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { Limits } from "../../../../../contracts/types.js";
import { CONTROLLERS, type ControlledLimit } from "./control-group.js";

const ROOT = "/sys/fs/cgroup";
const PAGE = 4096;

/** A program that starts another one in a control group of its own, with its variables. */
export interface ScopeCommand {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The user's systemd, and the limits that the system delegated to it. */
interface UserManager {
  readonly program: string;
  readonly runtimeDir: string;
  readonly limits: readonly ControlledLimit[];
}

/**
 * The limits that an ordinary user can set through systemd. The user's manager has a subtree of control groups of its own (version 2), and puts
 * processes there that the user could not move: a login session belongs to root.
 */
export function delegatedLimits(): readonly ControlledLimit[] {
  return findUserManager()?.limits ?? [];
}

/** Its private socket is enough; no session bus is needed. */
function findUserManager(): UserManager | undefined {
  const uid = process.getuid?.();
  if (uid === undefined || uid === 0) return undefined;
  const runtimeDir = process.env["XDG_RUNTIME_DIR"] || `/run/user/${uid}`;
  const program = ["/usr/bin/systemd-run", "/bin/systemd-run"].find((path) => existsSync(path));
  if (program === undefined || !existsSync(join(runtimeDir, "systemd", "private"))) return undefined;
  const delegated = readWords(`${ROOT}/user.slice/user-${uid}.slice/user@${uid}.service/cgroup.controllers`);
  const limits = CONTROLLERS.flatMap(([limit, controller]) => (delegated.includes(controller) ? [limit] : []));
  return { program, runtimeDir, limits };
}

function readWords(path: string): string[] {
  try {
    return readFileSync(path, "utf8").trim().split(" ");
  } catch {
    return [];
  }
}

/**
 * The command that starts a sandbox in a scope with these limits, which ends with its last process; undefined if no limit needs one: the processes of
 * a jail are counted without.
 */
export function scopeCommand(id: string, limits: Limits, isConfined: boolean): ScopeCommand | undefined {
  const { memory, cpus, pids } = limits;
  const isNeeded = memory !== undefined || cpus !== undefined || (pids !== undefined && !isConfined);
  const manager = isNeeded ? findUserManager() : undefined;
  if (manager === undefined) return undefined;
  const properties = [
    // With it, systemd doesn't end the whole scope when the kernel kills one of its processes for memory.
    "Delegate=yes",
    ...(memory === undefined ? [] : [`MemoryMax=${memory}`, "MemorySwapMax=0"]),
    ...(cpus === undefined ? [] : [`CPUQuota=${Math.round(cpus * 10_000) / 100}%`]),
    ...(pids === undefined ? [] : [`TasksMax=${pids}`]),
  ];
  // A reopened sandbox has the same id, and its old scope may not be gone yet.
  const unit = `glovebox-${id}-${randomBytes(4).toString("hex")}.scope`;
  const how = ["--user", "--scope", "--quiet", "--collect", `--unit=${unit}`];
  return {
    command: [manager.program, ...how, ...properties.map((property) => `--property=${property}`), "--"],
    env: { XDG_RUNTIME_DIR: manager.runtimeDir },
  };
}

/**
 * The control group of a process that was started in a scope. Throws `unsupported` if it isn't limited as asked: systemd ignores a limit whose
 * controller it doesn't have.
 */
export function scopeOf(pid: number, limits: Limits): string {
  const place = /^0::(\/.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, "utf8"))?.[1] ?? "/";
  const group = join(ROOT, place);
  const { memory, cpus, pids } = limits;
  const wrong = [
    ...(memory === undefined || readNumber(group, "memory.max") === memory - (memory % PAGE) ? [] : ["memory"]),
    ...(memory === undefined || readNumber(group, "memory.swap.max") <= 0 ? [] : ["memory"]),
    ...(cpus === undefined || isShare(group, cpus) ? [] : ["cpus"]),
    ...(pids === undefined || readNumber(group, "pids.max") === pids ? [] : ["pids"]),
  ];
  if (wrong.length === 0) return group;
  throw new SandboxError("unsupported", `systemd did not apply limits.${wrong[0]} to the sandbox's scope`, {
    hint: "let the system delegate the controller: Delegate=pids memory cpu in user@.service",
  });
}

/** A kernel without swap has no `memory.swap.max`. */
function readNumber(group: string, file: string): number {
  const text = readWords(join(group, file))[0] ?? "";
  return text === "" && file === "memory.swap.max"
    ? 0
    : Number(text === "max" ? Number.POSITIVE_INFINITY : text || Number.NaN);
}

function isShare(group: string, cpus: number): boolean {
  const [quota = 0, period = 1] = readWords(join(group, "cpu.max")).map(Number);
  return Math.abs(quota / period - cpus) <= cpus / 50;
}
