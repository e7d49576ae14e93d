import type { SandboxOptions } from "../../sandbox/types.js";
import { canCloseNetwork } from "../backend-facts.js";
import { isConfined } from "../blueprint.js";
import { type InstallPlan, openCommitFiles, planInstall, userConfig } from "../install.js";
import type { SourceRepository } from "../store.js";
import type { Blueprint, HarnessOptions } from "../types.js";

/** What is known about a run when its installation is decided. */
interface DecidedRun {
  readonly sandbox: SandboxOptions;
  readonly backend: string;
  readonly source: SourceRepository;
  readonly copies: readonly string[];
}

/** Decides what a run installs. Only a repository on this machine can be looked into before the sandbox is open. */
export async function decideInstall(
  blueprint: Blueprint,
  options: Pick<HarnessOptions, "install" | "network" | "sandbox" | "signal">,
  { sandbox, backend, source, copies }: DecidedRun,
): Promise<InstallPlan> {
  const { install: own } = blueprint.sandbox;
  const { gitDir, baseCommit, topLevel } = source;
  if (options.install === false || own === false) return { steps: [], notes: [] };
  if (gitDir === undefined || baseCommit === undefined) return { steps: [], notes: [] };
  const { network = "none" } = sandbox;
  return await planInstall({
    own,
    files: await openCommitFiles(gitDir, baseCommit, options.signal),
    config: userConfig(topLevel, { signal: options.signal }),
    network,
    isOpened: network === "full" || typeof (options.network ?? options.sandbox?.network) === "object",
    closedBecause: await whyClosed(blueprint, options, { sandbox, backend }),
    copied: copies,
  });
}

/** Why the network may not be opened for the installation; undefined when it may. */
async function whyClosed(
  blueprint: Blueprint,
  { network }: Pick<HarnessOptions, "network">,
  { sandbox, backend }: Pick<DecidedRun, "sandbox" | "backend">,
): Promise<string | undefined> {
  if (network === "none") return "the network of the run is none";
  if (isConfined(blueprint)) return "the blueprint comes from a repository and is not trusted (--trust)";
  if (await canCloseNetwork(backend, sandbox)) return undefined;
  return `the ${backend} backend can't close the network again after it`;
}
