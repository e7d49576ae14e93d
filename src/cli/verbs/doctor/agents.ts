import { findInstalledAgents, type InstalledAgent } from "../../../harness.js";
import type { Finding } from "../../../sandbox.js";

/** The coding agents on this machine: the version of each, and the versions that were tried. */
export async function agentFindings(): Promise<Finding[]> {
  return (await findInstalledAgents()).map(toAgentFinding);
}

/** One agent as a finding. Sandboxes with an image of their own may have another version. */
export function toAgentFinding({ name, path, version, tried, problem, install }: InstalledAgent): Finding {
  const versions = `tried: ${tried.join(", ")}`;
  if (path === undefined) return { name, status: "unused", detail: `not installed; ${versions}`, fix: install };
  const place = `in ${path}`;
  if (problem !== undefined) return { name, status: "limited", detail: `${problem}; ${place}`, fix: install };
  return { name, status: "ok", detail: `${version} ${place}; ${versions}` };
}
