import type { Capabilities, Limits } from "../../../../../contracts/types.js";
import { invalidArgument } from "../../../../util/schema.js";
import { usableControllers } from "./control-group.js";
import { canMountImages } from "./disk-image.js";
import { countsProcesses, DEFAULT_PIDS } from "./process-count.js";
import { delegatedLimits } from "./user-scope.js";

/** The limits also apply to the guest and to what starts a command. The kernel accepts no smaller share of the cores. */
const LEAST = { memory: 8 << 20, pids: 8, cpus: 0.01, disk: 1 << 20 };
/** The kernel accepts no more. */
const MOST = { memory: Number.MAX_SAFE_INTEGER, pids: 4_194_304, cpus: 1_000_000, disk: 8 * 1024 ** 4 };

/** Throws for limits that leave no room for a single command, and for those that the kernel would not accept unchanged. */
export function checkLimits(limits: Limits): void {
  for (const [name, least] of Object.entries(LEAST) as [keyof typeof LEAST, number][]) {
    const asked = limits[name] ?? least;
    const why = name === "cpus" ? "" : ": the sandbox itself needs some of it";
    if (asked < least) throw invalidArgument(`limits.${name}`, `at least ${least}${why}`, asked);
    if (asked > MOST[name]) throw invalidArgument(`limits.${name}`, `at most ${MOST[name]}`, asked);
  }
}

/** What decides which limits can be enforced on a sandbox. */
export interface LimitedKind {
  readonly isolation?: "required" | "none" | undefined;
  readonly repo?: string | undefined;
  readonly baseDir?: string | undefined;
  readonly workspace?: "worktree" | "overlay" | "copy" | undefined;
}

/** The limits that this machine lets us enforce on a sandbox of this kind. */
export function enforceableLimits(kind: LimitedKind = {}): Capabilities["limits"] {
  const isConfined = kind.isolation !== "none";
  const limits: Capabilities["limits"][number][] = [...usableControllers(), ...delegatedLimits()];
  if (isConfined && countsProcesses() && !limits.includes("pids")) limits.push("pids");
  if (whyNoImage(kind) === undefined) limits.push("disk");
  return limits;
}

/** Why the files of a sandbox of this kind can't be on an image of a fixed size; undefined if they can. */
export function whyNoImage({ isolation, repo, baseDir, workspace = "worktree" }: LimitedKind): string | undefined {
  if (isolation === "none") return "without isolation a command can write anywhere";
  if (baseDir !== undefined) return "a directory of yours has no quota";
  if (repo !== undefined && workspace === "worktree") return "a worktree is a plain directory without a quota";
  return canMountImages()
    ? undefined
    : "only root can give a sandbox a file system of its own, with loop devices and mke2fs";
}

/** How many processes a jail may have, where the kernel counts them for it alone; undefined elsewhere. */
export function processLimit({ pids = DEFAULT_PIDS }: Limits): number | undefined {
  return countsProcesses() ? pids : undefined;
}
