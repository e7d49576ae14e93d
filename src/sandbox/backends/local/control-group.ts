import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { toSandboxError } from "../../../../contracts/errors.js";
import type { Limits } from "../../../../contracts/types.js";
import { invalidArgument } from "../../../util/schema.js";

const ROOT = "/sys/fs/cgroup";
const PARENT = "glovebox";
const PERIOD_US = 100_000;
/** The limits also apply to the guest and to what starts a command. The kernel accepts no smaller share of the cores. */
const LEAST = { memory: 4 << 20, pids: 8, cpus: 0.01 };
/** The kernel accepts no more. */
const MOST = { memory: Number.MAX_SAFE_INTEGER, pids: 4_194_304, cpus: 1_000_000 };

/** Throws for limits that leave no room for a single command, and for those that the kernel would not accept unchanged. */
export function checkLimits(limits: Limits): void {
  for (const [name, least] of Object.entries(LEAST) as [keyof typeof LEAST, number][]) {
    const asked = limits[name] ?? least;
    const why = name === "cpus" ? "" : ": the sandbox itself needs some of it";
    if (asked < least) throw invalidArgument(`limits.${name}`, `at least ${least}${why}`, asked);
    if (asked > MOST[name]) throw invalidArgument(`limits.${name}`, `at most ${MOST[name]}`, asked);
  }
}

/** The limits that this machine lets us enforce. Never `disk`: a plain directory has no quota. */
export function enforceableLimits(): ("memory" | "cpus" | "pids")[] {
  if (process.getuid?.() !== 0) return [];
  const limits: ("memory" | "cpus" | "pids")[] = [];
  for (const [limit, controller] of [
    ["memory", "memory"],
    ["cpus", "cpu"],
    ["pids", "pids"],
  ] as const) {
    if (isUnified() ? unifiedControllers().includes(controller) : existsSync(join(ROOT, controller, "cgroup.procs")))
      limits.push(limit);
  }
  return limits;
}

function isUnified(): boolean {
  return existsSync(join(ROOT, "cgroup.controllers"));
}

function unifiedControllers(): string[] {
  return readFileSync(join(ROOT, "cgroup.subtree_control"), "utf8").trim().split(" ");
}

/** Paths of the control groups of a sandbox. Record them before `makeControlGroups`. */
export function controlGroupPaths(id: string, limits: Limits): string[] {
  if (isUnified()) return [join(ROOT, PARENT, id)];
  const controllers = [];
  if (limits.memory !== undefined) controllers.push("memory");
  if (limits.cpus !== undefined) controllers.push("cpu");
  if (limits.pids !== undefined) controllers.push("pids");
  return controllers.map((controller) => join(ROOT, controller, PARENT, id));
}

/** Makes the groups and sets their limits. */
export function makeControlGroups(paths: readonly string[], limits: Limits): void {
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
