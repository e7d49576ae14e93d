import { resolve } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy, NetworkRules } from "../../../contracts/types.js";
import { entryText, mergeEntries, underPolicy } from "../../sandbox/host.js";
import type { SandboxOptions } from "../../sandbox/types.js";
import { assertBackend, backendOf, chooseBackend, withPreferredWorkDir } from "../../sandbox.js";
import { defined } from "../../util/defined.js";
import { isoTime } from "../../util/iso-time.js";
import { ownVersion } from "../../util/own-version.js";
import { assertAgent } from "../agents.js";
import { sandboxOptionsIn } from "../backend-facts.js";
import { assertConfined, nodeThatNeedsSpec, trustNote } from "../blueprint.js";
import { assertGh, gitHubHost } from "../github.js";
import { hostFilesOf, hostPathOf, readHomeFiles } from "../home-files.js";
import { type BlueprintNeeds, needsOf, resolveSecrets, sandboxOptionsOf } from "../needs.js";
import { nodesBetween } from "../node-range.js";
import {
  branchOfRun,
  createRunDirectory,
  keptBlueprint,
  newRunId,
  openSource,
  type RunPlan,
  runsFolder,
  type SourceRepository,
  splitOptions,
  topOf,
  writeRunPlan,
} from "../store.js";
import type { Blueprint, HarnessOptions, RunReport } from "../types.js";
import { blueprintOf } from "./blueprint-of.js";
import { checkHarnessOptions } from "./check-options.js";
import { checkCopies } from "./copy-paths.js";
import { decideInstall } from "./decide-install.js";
import { decideSecrets, fetchedElsewhere } from "./decide-secrets.js";
import { resolveInputs } from "./inputs.js";
import { runSession } from "./run-session.js";
import { readSpec, toSessionOptions } from "./session-options.js";
import { WallClock } from "./wall-clock.js";

/** A run that was decided and not started: everything that can be refused has been. */
export interface PreparedRun {
  readonly blueprint: Blueprint;
  readonly plan: RunPlan;
  readonly source: SourceRepository;
  readonly secrets: Readonly<Record<string, string>>;
  /** How its sandbox is opened. */
  readonly sandboxOptions: SandboxOptions;
  /** What the file of the spec says. */
  readonly spec?: string;
  /** What the user should know before it starts. */
  readonly warnings: readonly string[];
}

/**
 * Runs a blueprint on a repository in a sandbox, and gives the report. A run that cannot start is a `SandboxError`;
 * everything that happens later is in the report.
 */
export async function runHarness(options: HarnessOptions): Promise<RunReport> {
  const startedAt = performance.now();
  const { source, ...decided } = await prepareRun(options, startedAt);
  const { runId } = decided.plan;
  const directory = await createRunDirectory(runId, options.out ?? runsFolder(source), topOf(source));
  const session = toSessionOptions(options, { ...decided, directory, startedAt });
  await writeRunPlan(directory, session.plan, session.hidden);
  return await runSession(session);
}

/**
 * Decides everything about a run and makes nothing. That belongs to the run's wall, which counts from `startedAt`: once it is over, the run
 * is `unavailable`.
 */
export async function prepareRun(options: HarnessOptions, startedAt: number = performance.now()): Promise<PreparedRun> {
  checkHarnessOptions(options);
  const blueprint = await blueprintOf(options.blueprint, options);
  const clock = new WallClock(options.limits?.wall ?? blueprint.limits.wall, startedAt);
  const signal = options.signal === undefined ? clock.signal : AbortSignal.any([options.signal, clock.signal]);
  try {
    return await clock.bounded("starting", () => decide(blueprint, { ...options, signal }));
  } finally {
    clock.end();
  }
}

async function decide(blueprint: Blueprint, options: HarnessOptions): Promise<PreparedRun> {
  nodesBetween(blueprint, options.from, options.until);
  checkSpec(blueprint, options);
  if (options.agent !== undefined) assertAgent(options.agent, options.agents);
  const inputs = resolveInputs(blueprint, options.inputs);
  const needs = needsOf(blueprint, { ...options, env: { ...options.sandbox?.env, ...options.env } });
  assertConfined(blueprint, [
    ...gainsOf(needs),
    ...Object.keys(blueprint.sandbox.secrets ?? {}).map((name) => `the secret ${name}`),
    ...(options.sandbox?.isolation === "none" ? ["all of this machine: there is no isolation"] : []),
  ]);
  const elsewhere = fetchedElsewhere(sandboxOptionsIn(options).secrets);
  const secrets = resolveSecrets(needs, options.secretSource ?? process.env, elsewhere);
  const home = readHomeFiles(blueprint.sandbox.home);
  const backend = lastingName(options.sandboxType ?? chooseBackend(process.env));
  const { githubToken = options.sandbox?.githubToken } = options;
  const given = sandboxOptionsIn(options);
  const network = networkOf(needs.network, options);
  const ofBlueprint = sandboxOptionsOf(blueprint, { network });
  const kept = await decideSecrets(blueprint, options, { needs, values: secrets, network, backend, home });
  const limitsOfSandbox = { ...options.sandboxDefaults?.limits, ...ofBlueprint.limits, ...given.limits };
  const wanted: SandboxOptions = {
    ...options.sandboxDefaults,
    ...ofBlueprint,
    ...given,
    ...(Object.keys(limitsOfSandbox).length > 0 && { limits: limitsOfSandbox }),
    ...(Object.keys(kept.rules).length > 0 && { secrets: kept.rules }),
    env: { ...blueprint.sandbox.env, ...options.env, ...options.sandbox?.env },
    ...defined({ githubToken }),
  };
  const sandbox = await withWorkDir(wanted, backend, options.preferredWorkDir);
  const { again } = await splitOptions(given);
  await assertBackend(backend, { ...sandbox, repo: options.repo });
  await assertFilesAllowed(blueprint, sandbox, backend);
  const spec = await readSpec(options.specPath);
  const { repo, ref, branch, signal, base, prWith, agent, model, env, limits, from, until } = options;
  const host = gitHubHost(process.env);
  const source = await openSource({ repo, ref, branch, backend, host, token: options.githubToken, signal });
  if (options.push === true && options.prWith === "gh") await assertGh();
  const copies = await checkCopies([...(blueprint.sandbox.copy ?? []), ...(options.copy ?? [])], source);
  const install = await decideInstall(blueprint, options, { sandbox, backend, source, copies });
  const runId = options.runId ?? newRunId();
  const { baseCommit, gitDir, remoteUrl } = source;
  const plan: RunPlan = {
    version: 1,
    runId,
    createdAt: isoTime(),
    gloveboxVersion: ownVersion(),
    nodeVersion: process.version,
    backend,
    repo: source.topLevel ?? repo,
    sandboxRepo: source.repo,
    ...defined({ gitDir, baseCommit, remoteUrl }),
    branch: branch ?? branchOfRun(runId, blueprint.name),
    intent: options.intent,
    push: options.push ?? false,
    pushOn: options.pushOn ?? "success",
    draft: options.draft ?? false,
    keep: options.keep ?? "failed",
    sandbox: (await splitOptions(sandbox)).written,
    ...(again.length > 0 && { again }),
    ...(kept.reports.length > 0 && { secrets: kept.reports }),
    ...(install.steps.length > 0 && { installs: install.steps }),
    ...(copies.length > 0 && { copies }),
    blueprint: keptBlueprint(blueprint),
    inputs,
    ...defined({ ref, base, prWith, agent, model, env, limits, from, until }),
    ...(options.specPath !== undefined && { specPath: resolve(options.specPath) }),
  };
  const warnings = [
    ...[trustNote(blueprint) ?? []].flat(),
    ...source.warnings,
    ...install.notes,
    ...warningsOf(options, needs, remoteUrl),
  ];
  return { blueprint, plan, source, secrets, sandboxOptions: sandbox, ...defined({ spec }), warnings };
}

/** A file that is copied in is as visible as one that is mounted, so the rule of a policy about mounts is about both. */
async function assertFilesAllowed(
  { sandbox: { home } }: Blueprint,
  wanted: SandboxOptions,
  backend: string,
): Promise<void> {
  const copied = hostFilesOf(home).map(({ file }) => ({ source: hostPathOf(file) }));
  if (copied.length === 0) return;
  await underPolicy(await backendOf(backend), { ...wanted, mounts: [...(wanted.mounts ?? []), ...copied] });
}

async function withWorkDir(wanted: SandboxOptions, backend: string, place?: string): Promise<SandboxOptions> {
  if (place === undefined) return wanted;
  const { backend: _, ...placed } = await withPreferredWorkDir({ ...wanted, backend }, place);
  return placed;
}

/** The network of the nodes: what they need, and what the user says. */
function networkOf(needed: NetworkPolicy, { network, sandbox }: HarnessOptions): NetworkPolicy {
  if (network === undefined) return needed;
  if (sandbox?.network !== undefined) {
    throw new SandboxError("invalid_argument", "Options network and sandbox.network exclude each other", {
      hint: "leave sandbox.network out",
    });
  }
  if (typeof network === "string" || needed === "full") return typeof network === "string" ? network : needed;
  const { allow, deny = [] }: NetworkRules = needed === "none" ? { allow: [] } : needed;
  const denied = mergeEntries(deny, network.deny ?? []);
  return { ...network, allow: mergeEntries(allow, network.allow), ...(denied.length > 0 && { deny: denied }) };
}

/** A path means the same file when the run is resumed in another directory. */
function lastingName(backend: string): string {
  return /^\.{1,2}\//.test(backend) ? resolve(backend) : backend;
}

/** What nodes get of the host, in words. */
function gainsOf({ network, secrets }: BlueprintNeeds): string[] {
  return [
    ...secrets.flatMap(({ names }) => (names.length === 0 ? [] : [`the secret ${names.join(" or ")}`])),
    ...(network === "none"
      ? []
      : network === "full"
        ? ["the whole network"]
        : network.allow.map((entry) => `the host ${entryText(entry)}`)),
  ];
}

/** What will have no effect, said before it costs anything. */
function warningsOf(
  { push, githubToken, agent, model }: HarnessOptions,
  { agents }: BlueprintNeeds,
  remoteUrl: string | undefined,
): string[] {
  const idle = agents.length > 0 ? [] : Object.entries({ agent, model }).filter(([, value]) => value !== undefined);
  return [
    ...(push === true && !githubToken ? ["there is no token for GitHub: nothing will be pushed"] : []),
    ...(push === true && remoteUrl === undefined ? ['there is no remote "origin": nothing will be pushed'] : []),
    ...idle.map(([name, value]) => `the blueprint has no agent: ${name} "${value}" changes nothing`),
  ];
}

function checkSpec(blueprint: Blueprint, { specPath }: HarnessOptions): void {
  const node = specPath === undefined ? nodeThatNeedsSpec(blueprint) : undefined;
  if (node === undefined) return;
  throw new SandboxError("invalid_argument", `Node ${node} of the blueprint ${blueprint.name} needs a spec`, {
    hint: "--spec <file> names a text that says in detail what is wanted",
  });
}
