import type { Backend } from "../../../../contracts/backend.js";
import type { Capabilities } from "../../../../contracts/types.js";
import { NO_REPOSITORY } from "../../capabilities.js";

/** What the Vercel backend enforces; `git` is true with a repository. */
export function vercelCapabilities(git: boolean): Capabilities {
  return {
    isolation: "microvm",
    killTree: "best-effort",
    network: ["none", "full", "allow"],
    limits: ["memory", "cpus"],
    // The service stops the machine for it, so no file is half written.
    snapshot: "consistent",
    fork: "copy",
    pty: true,
    user: true,
    workDir: true,
    paths: ["workdir", "sandbox"],
    combinedOutput: true,
    ports: true,
    git,
    keep: "all",
    reasons: {
      liveNetwork: "its connections don't pass through this process, and the rules are part of the machine",
      networkRules: "the service allows hosts by name, and looks at nothing else",
      "limits.pids": "the service has no limit on processes",
      secrets: "its machines reach the network without the proxy that would put them in",
      "limits.disk": "each machine of the service has the same disk",
      ...(!git && { git: NO_REPOSITORY }),
    },
  };
}

/** What the conformance kit needs to know about the Vercel backend. */
export const conformance: NonNullable<Backend["conformance"]> = {
  hasHttpPorts: true,
  skips: {
    "limits.memory": "a machine has 2 GiB for each processor; a limit of 128 MiB is refused",
    "limits.cpus": "a machine has whole processors; a quarter of one is refused",
  },
};
