import { SandboxError } from "../../../../../contracts/errors.js";
import type { Capabilities, Limits } from "../../../../../contracts/types.js";
import { standing } from "../../../../machine/standing.js";
import { enforceableLimits, type LimitedKind, whyNoImage } from "./enforceable.js";

/** Why a limit can't be enforced here, and what to do. */
interface Refusal {
  reason: string;
  hint: string;
}

const ELSEWHERE = "use the docker backend";

/** Throws `unsupported` with the reason for the first limit that can't be enforced on a sandbox of this kind. */
export function refuseLimits(limits: Limits, kind: LimitedKind): void {
  const enforced: readonly string[] = enforceableLimits(kind);
  for (const [name, value] of Object.entries(limits) as [keyof Limits, number | undefined][]) {
    if (value === undefined || enforced.includes(name)) continue;
    const { reason, hint } = whyRefused(name, kind);
    throw new SandboxError("unsupported", `The local backend can't enforce limits.${name} (${value}): ${reason}`, {
      backend: "local",
      hint,
    });
  }
}

/** Why limits can't be enforced on a sandbox of this kind, as its capabilities say it. */
export function reasonsForLimits(kind: LimitedKind): NonNullable<Capabilities["reasons"]> {
  const enforced: readonly string[] = enforceableLimits(kind);
  const missing = (["memory", "cpus", "pids", "disk"] as const).filter((name) => !enforced.includes(name));
  return Object.fromEntries(missing.map((name) => [`limits.${name}`, whyRefused(name, kind).reason]));
}

/** Why a limit that can't be enforced is refused. */
export function whyRefused(name: keyof Limits, kind: LimitedKind = {}): Refusal {
  const isRoot = process.getuid?.() === 0;
  if (name === "pids" && kind.isolation !== "none" && standing() === "bare-root") {
    return {
      reason: "the kernel doesn't count the processes of root",
      hint: "start the container with --user 1000:1000, or with /sys/fs/cgroup writable",
    };
  }
  if (name === "disk") {
    const isWorktree = isRoot && kind.repo !== undefined && kind.isolation !== "none";
    return {
      reason: whyNoImage(kind) ?? "it can't",
      hint: isWorktree ? 'set workspace: "overlay" or "copy"' : "run as root, without baseDir and with isolation",
    };
  }
  if (isRoot) {
    return {
      reason: "no control group with this controller is writable here",
      hint: `mount /sys/fs/cgroup writable, or ${ELSEWHERE}`,
    };
  }
  if (name === "pids") {
    const isFree = kind.isolation === "none";
    const reason = isFree ? "without isolation nobody counts its processes" : "it needs Linux 5.14";
    return { reason, hint: isFree ? 'leave out isolation: "none"' : ELSEWHERE };
  }
  return {
    reason: "an ordinary user has no control group here",
    hint: `log in where systemd runs a manager for you (loginctl enable-linger), run as root, or ${ELSEWHERE}`,
  };
}
