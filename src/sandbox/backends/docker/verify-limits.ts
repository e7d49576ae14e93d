import { SandboxError, toSandboxError } from "../../../../contracts/errors.js";
import type { Limits } from "../../../../contracts/types.js";
import type { Engine } from "./engine/engine.js";

/** What the kernel reports about a running container. */
interface Stats {
  memory_stats?: { limit?: number };
  pids_stats?: { limit?: number };
}

/**
 * Throws `unsupported` if a running container does not have the limits that it was created with. Podman without root ignores them, although it says
 * that it can enforce them.
 */
export async function verifyLimits(engine: Engine, id: string, limits: Limits, signal?: AbortSignal): Promise<void> {
  const { memory, pids } = limits;
  if (memory === undefined && pids === undefined) return;
  const query = { stream: false, "one-shot": true };
  const stats = await engine
    .call<Stats>("GET", `/containers/${id}/stats`, { query, signal })
    .catch((error: unknown) => {
      signal?.throwIfAborted();
      throw ignored(`limits: ${toSandboxError(error).message}`);
    });
  for (const [name, asked, found] of [
    ["memory", memory, stats.memory_stats?.limit],
    ["pids", pids, stats.pids_stats?.limit],
  ] as const) {
    if (asked === undefined || (found !== undefined && found > 0 && found <= asked)) continue;
    throw ignored(
      `limits.${name} (${asked}): the container has ${found === undefined || found === 0 ? "none" : found}`,
    );
  }
}

function ignored(what: string): SandboxError {
  return new SandboxError("unsupported", `The engine did not apply ${what}`, {
    hint: "run the engine as root, or where it has control groups of its own (cgroup v2)",
  });
}
