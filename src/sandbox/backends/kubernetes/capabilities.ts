import type { Capabilities } from "../../../../contracts/types.js";
import { NO_REPOSITORY } from "../../capabilities.js";

const ONE_USER = "everything in a pod runs as the one user of its container";

/** What a pod keeps. */
export const KUBERNETES_CAPABILITIES: Capabilities = {
  isolation: "container",
  killTree: "descendants",
  network: ["none", "full", "allow"],
  liveNetwork: true,
  networkRules: true,
  limits: ["memory", "cpus"],
  snapshot: "consistent",
  fork: "copy",
  pty: true,
  user: false,
  workDir: true,
  paths: ["workdir", "sandbox"],
  combinedOutput: true,
  secrets: true,
  ports: true,
  git: true,
  keep: "all",
  renames: "all",
  reasons: {
    user: ONE_USER,
    "limits.pids": "a pod can't set it: the kubelet of each node has one limit for all of its pods",
    "limits.disk": "a kubelet ends a pod that has used too much of its disk, but does not stop it from using it",
  },
};

/** The same for one sandbox. */
export function capabilitiesWith(git: boolean): Capabilities {
  const { reasons } = KUBERNETES_CAPABILITIES;
  return { ...KUBERNETES_CAPABILITIES, git, reasons: { ...reasons, ...(!git && { git: NO_REPOSITORY }) } };
}
