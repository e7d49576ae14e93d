import { spawnSync } from "node:child_process";

/** Why pods that are processes of this machine can't be had; undefined when they can. */
export function whyNoFakeCluster(): string | undefined {
  if (process.platform !== "linux") return "pods of the fake are processes in Linux namespaces";
  if (process.getuid?.() !== 0) return "only root can make a network for pods of the fake";
  for (const name of ["bwrap", "nsenter", "openssl", "ip"]) {
    if (spawnSync(name, ["-V"], { stdio: "ignore" }).error) return `not installed: ${name}`;
  }
  return undefined;
}
