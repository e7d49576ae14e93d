import type { HarnessOptions } from "../../harness.js";
import type { RunOffer } from "../../mcp.js";
import { type OpenOptions, WORKSPACE } from "../../sandbox.js";
import { UsageError } from "../commands.js";
import type { Flags } from "../invocation.js";
import { limitsOf, withRunDefaults } from "../runs/run-options.js";

/** Options of a sandbox that the sandbox of a run has as well; the others belong to the one of the tools, or are the harness's own. */
const SHARED = [
  ...(["image", "limits", "env", "secrets", "mounts", "isolation", "audit", "gitFilters", "gitAlternates"] as const),
];

/** What `--tools runs` lets the model run: blueprints on the repository of `--repo`, with the rules that the other flags set. */
export async function runOfferOf(flags: Flags, sandbox: OpenOptions, blueprints: readonly string[]): Promise<RunOffer> {
  const { repo, backend, network, githubToken } = sandbox;
  if (repo === undefined) throw new UsageError("--tools runs needs --repo", "for example --repo .");
  const limits = limitsOf(flags);
  const shared = Object.fromEntries(SHARED.flatMap((key) => (sandbox[key] === undefined ? [] : [[key, sandbox[key]]])));
  return await withRunDefaults({
    repo,
    preferredWorkDir: WORKSPACE,
    ...(blueprints.length > 0 && { blueprints }),
    ...(backend !== undefined && { sandboxType: backend }),
    ...(network !== undefined && { network }),
    ...(githubToken !== undefined && { githubToken }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(Object.keys(shared).length > 0 && { sandbox: shared as NonNullable<HarnessOptions["sandbox"]> }),
  });
}
