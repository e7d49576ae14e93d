import { spawnSync } from "node:child_process";
import { hasCommand } from "../system-parts.mjs";
import { hierarchies } from "./groups.mjs";

const TOOLS = ["unshare", "nsenter", "setpriv", "flock", "mount", "ip", "openssl", "tar", "nft", "busybox"];

/** Why this machine can't run a cluster; undefined if it can. */
export function whyNoCluster() {
  if (process.platform !== "linux") return "a cluster needs Linux";
  if (process.getuid() !== 0) return "a cluster needs root";
  const missing = TOOLS.filter((name) => !hasCommand(name));
  if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
  if (hierarchies().length === 0)
    return "this release of Kubernetes needs control groups of version 1, with the memory controller";
  const flags = ["--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--mount-proc"];
  const { status, stderr } = spawnSync("unshare", [...flags, "true"], { encoding: "utf8" });
  return status === 0 ? undefined : `namespaces can't be made here: ${stderr.trim()}`;
}
