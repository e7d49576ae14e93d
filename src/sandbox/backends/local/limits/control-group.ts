import { closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toSandboxError } from "../../../../../contracts/errors.js";
import type { Limits } from "../../../../../contracts/types.js";

const ROOT = "/sys/fs/cgroup";
const PARENT = "glovebox";
const PERIOD_US = 100_000;
/** The limits that control groups enforce. */
export type ControlledLimit = "memory" | "cpus" | "pids";
/** The controller behind each of them. */
export const CONTROLLERS: readonly (readonly [ControlledLimit, string])[] = [
  ["memory", "memory"],
  ["cpus", "cpu"],
  ["pids", "pids"],
];
let usable: readonly ControlledLimit[] | undefined;

/** The controllers that this machine lets us use, by the limit that each enforces. Only root can make groups at the top. */
export function usableControllers(): readonly ControlledLimit[] {
  usable ??= findControllers();
  return usable;
}

function findControllers(): ControlledLimit[] {
  if (process.getuid?.() !== 0) return [];
  if (isUnified() && !isWritable(ROOT)) return [];
  return CONTROLLERS.flatMap(([limit, controller]) => {
    const isUsable = isUnified() ? unifiedControllers().includes(controller) : isWritable(join(ROOT, controller));
    return isUsable ? [limit] : [];
  });
}

/** In a container groups usually are read-only, for root too. Opened, since Deno answers `access` by the mode of a file alone. */
function isWritable(group: string): boolean {
  try {
    closeSync(openSync(join(group, "cgroup.procs"), constants.O_WRONLY));
    return true;
  } catch {
    return false;
  }
}

function isUnified(): boolean {
  return existsSync(join(ROOT, "cgroup.controllers"));
}

function unifiedControllers(): string[] {
  return readFileSync(join(ROOT, "cgroup.subtree_control"), "utf8").trim().split(" ");
}

/** Paths of the control groups of a sandbox: none if no limit needs one. Record them before `makeControlGroups`. */
export function controlGroupPaths(id: string, limits: Limits): string[] {
  const found = usableControllers();
  const needed = CONTROLLERS.filter(([limit]) => limits[limit] !== undefined && found.includes(limit));
  if (isUnified()) return needed.length > 0 ? [join(ROOT, PARENT, id)] : [];
  return needed.map(([, controller]) => join(ROOT, controller, PARENT, id));
}

/** Makes the groups and sets their limits. */
export function makeControlGroups(paths: readonly string[], limits: Limits): void {
  if (paths.length === 0) return;
  try {
    if (isUnified()) {
      mkdirSync(join(ROOT, PARENT), { recursive: true });
      writeFileSync(join(ROOT, PARENT, "cgroup.subtree_control"), "+memory +cpu +pids");
    }
    for (const path of paths) {
      mkdirSync(path, { recursive: true });
      for (const [file, value] of settings(limits)) {
        const setting = join(path, file);
        if (existsSync(setting)) writeFileSync(setting, value);
      }
    }
  } catch (error) {
    throw toSandboxError(error, { operation: "limits" });
  }
}

function settings({ memory, cpus, pids }: Limits): [string, string][] {
  const all: [string, string][] = [];
  if (memory !== undefined) {
    const bytes = String(memory);
    all.push(
      ["memory.limit_in_bytes", bytes],
      ["memory.memsw.limit_in_bytes", bytes],
      ["memory.max", bytes],
      ["memory.swap.max", "0"],
    );
  }
  if (cpus !== undefined) {
    const quota = Math.round(cpus * PERIOD_US);
    all.push(
      ["cpu.cfs_period_us", String(PERIOD_US)],
      ["cpu.cfs_quota_us", String(quota)],
      ["cpu.max", `${quota} ${PERIOD_US}`],
    );
  }
  if (pids !== undefined) all.push(["pids.max", String(pids)]);
  return all;
}

/** How often the memory limit has killed something in these groups; undefined if they don't count it. */
export function oomKills(paths: readonly string[]): number | undefined {
  for (const path of paths) {
    for (const file of ["memory.events", "memory.oom_control"]) {
      const counter = join(path, file);
      if (!existsSync(counter)) continue;
      const line = /^oom_kill (\d+)$/m.exec(readFileSync(counter, "utf8"));
      if (line) return Number(line[1]);
    }
  }
  return undefined;
}
