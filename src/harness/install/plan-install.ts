import { basename } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy } from "../../../contracts/types.js";
import { showCommand } from "../../util/shell.js";
import { INSTALL_TOOLS } from "./all-tools.js";
import type { CommitFiles } from "./commit-files.js";
import { canBeAllowed, type HostPort, hostOf, isCovered, toEntry, toShortEntry } from "./hosts.js";
import type { InstallPlan, InstallStep } from "./install-step.js";
import type { InstallTool, ProjectFiles, ToolSettings, ToolSetup } from "./tool.js";

const MOST_NAMED = 10;

/** What decides about the installation of a run. */
export interface InstallWish {
  /** A program that the blueprint names in place of what is found. */
  readonly own?: readonly string[] | undefined;
  readonly files: CommitFiles;
  readonly config: ToolSettings;
  /** The network that the nodes have. */
  readonly network: NetworkPolicy;
  /** Whether the user has opened it for this run, by `allow` or `full`: then that decides where no registry is known. */
  readonly isOpened?: boolean;
  /** Why nothing may be opened beside it; undefined when something may. */
  readonly closedBecause?: string | undefined;
  /** Paths that are copied in. */
  readonly copied: readonly string[];
}

interface FoundTool {
  readonly tool: InstallTool;
  readonly lockfile: string;
  readonly lock: string;
  readonly project: ProjectFiles;
}

/**
 * Decides what a run installs and which hosts that may reach. Those come from the user's own configuration; a lockfile that names others is
 * `permission_denied`, with the flag that allows them.
 */
export async function planInstall(wish: InstallWish): Promise<InstallPlan> {
  const found = await findTools(wish.files);
  const plans: InstallPlan[] = [];
  if (wish.own !== undefined) plans.push(await planOwn(wish, wish.own, found));
  else for (const each of found) plans.push(await planFound(wish, each));
  return { steps: plans.flatMap(({ steps }) => steps), notes: plans.flatMap(({ notes }) => notes) };
}

/** The tools whose lockfiles a repository has, one of each ecosystem. */
async function findTools(files: CommitFiles): Promise<FoundTool[]> {
  const found: FoundTool[] = [];
  for (const tool of INSTALL_TOOLS) {
    if (found.some(({ tool: { ecosystem } }) => ecosystem === tool.ecosystem)) continue;
    for (const lockfile of tool.lockfiles) {
      const lock = await files.read(lockfile);
      if (lock === undefined || !tool.accepts(lock)) continue;
      const project: Record<string, string> = {};
      for (const name of tool.projectFiles) {
        const text = await files.read(name);
        if (text !== undefined) project[name] = text;
      }
      found.push({ tool, lockfile, lock, project });
      break;
    }
  }
  return found;
}

async function planFound(wish: InstallWish, { tool, lockfile, lock, project }: FoundTool): Promise<InstallPlan> {
  const { name, fills, env } = tool;
  const what = `the install step ${showCommand(tool.run(lockfile, lock))} (${lockfile})`;
  if (fills !== undefined && wish.copied.includes(fills)) {
    return { steps: [], notes: [`${what} is left out: ${fills} is copied in`] };
  }
  const { whyUnknown, ...setup } = await setUp(wish, tool, project);
  if (whyUnknown !== undefined) {
    const named = tool.named(lock, project).flatMap((address) => hostOf(address) ?? []);
    return {
      steps: [],
      notes: [`${what} is left out: ${wish.closedBecause ?? whyUnknown}; ${flagFor(named, lockfile)}`],
    };
  }
  const run = [...tool.run(lockfile, lock), ...setup.args];
  const registries = setup.registries.flatMap((address) => hostOf(address) ?? []);
  const beyond = registries.filter((place) => !isCovered(place, wish.network));
  const never = beyond.find((place) => !canBeAllowed(place));
  if (never !== undefined) {
    const why = `your configuration of ${name} names ${toShortEntry(never)}, which no sandbox can reach`;
    return { steps: [], notes: [`${what} is left out: ${why}${insteadOf(fills)}`] };
  }
  if (beyond.length > 0 && wish.closedBecause !== undefined) {
    return { steps: [], notes: [`${what} is left out: ${wish.closedBecause}; ${flagFor(beyond)}`] };
  }
  await assertKnown(wish, { tool, lockfile, lock, project }, registries);
  const step: InstallStep = {
    ...{ id: `install-${name}`, lockfile, run, env: { ...env, ...setup.env } },
    ...{ reach: beyond.map(toEntry), hasSecret: setup.hasSecret, ...(fills !== undefined && { fills }) },
  };
  return { steps: [step], notes: [] };
}

/** The step that a blueprint names. It may reach what its program is configured for, or the tool of the lockfile. */
async function planOwn(wish: InstallWish, run: readonly string[], found: readonly FoundTool[]): Promise<InstallPlan> {
  const program = basename(run[0] ?? "");
  const tool = INSTALL_TOOLS.find(({ programs }) => programs.includes(program)) ?? found[0]?.tool;
  const project = found.find((each) => each.tool === tool)?.project ?? {};
  const none: KnownSetup = { registries: [], isIncomplete: false, env: {}, args: [], hasSecret: false };
  const setup = tool === undefined ? none : await setUp(wish, tool, project);
  const registries = setup.registries.flatMap((address) => hostOf(address) ?? []);
  const beyond = registries.filter((place) => !isCovered(place, wish.network) && canBeAllowed(place));
  if (beyond.length > 0 && wish.closedBecause !== undefined) {
    throw new SandboxError("unsupported", `The install step of the blueprint can't be run: ${wish.closedBecause}`, {
      hint: `${flagFor(beyond)}; --no-install leaves it out`,
    });
  }
  const id = `install-${(tool?.name ?? program).replace(/[^A-Za-z0-9_-]/g, "-")}`;
  const env = { ...tool?.env, ...setup.env };
  const notes =
    setup.whyUnknown === undefined
      ? []
      : [`the install step of the blueprint may lack a registry: ${setup.whyUnknown}; ${flagFor([])}`];
  return { steps: [{ id, run, env, reach: beyond.map(toEntry), hasSecret: setup.hasSecret }], notes };
}

interface KnownSetup extends ToolSetup {
  /** Why a registry is not known that nothing else has opened. */
  readonly whyUnknown?: string;
}

/** The setup of a tool by its user; what the user has not configured, the tool itself is asked. */
async function setUp({ config, isOpened }: InstallWish, tool: InstallTool, project: ProjectFiles): Promise<KnownSetup> {
  let reason = `${tool.name} can't say where it gets packages from`;
  const ask = async (): Promise<readonly string[]> => {
    for (const question of tool.asks ?? []) {
      const answer = await config.ask(question);
      if (answer.lines !== undefined) return answer.lines;
      reason = answer.reason;
    }
    return [];
  };
  const setup = await tool.setup(config, project, ask);
  if (!setup.isIncomplete || isOpened === true) return setup;
  return { ...setup, whyUnknown: `your configuration of ${tool.name} names no registry, and ${reason}` };
}

/** The flag that opens hosts for the whole run. */
function flagFor(places: readonly HostPort[], lockfile?: string): string {
  const entries = [...new Set(places.map(toShortEntry))].sort().slice(0, MOST_NAMED);
  const from = lockfile === undefined || entries.length === 0 ? "" : ` (named by ${lockfile})`;
  return `--network allow=${entries.join(",") || "<host>"}${from} gives the whole run its hosts`;
}

/** Refuses a lockfile that names hosts which neither the user's configuration nor the network of the run has. */
async function assertKnown(
  { network, config }: InstallWish,
  { tool, lockfile, lock, project }: FoundTool,
  registries: readonly HostPort[],
): Promise<void> {
  const isOneOf = (place: HostPort, places: readonly HostPort[]): boolean =>
    places.some(({ host, port }) => host === place.host && port === place.port);
  const named = tool.named(lock, project).flatMap((address) => hostOf(address) ?? []);
  const strange = named.filter((place) => !isCovered(place, network) && !isOneOf(place, registries));
  if (strange.length === 0) return;
  const { lines = [] } = tool.replaces === undefined ? {} : await config.ask(tool.replaces);
  const replaced = lines.slice(0, 1).flatMap((address) => hostOf(address) ?? []);
  const others = [...new Set(strange.filter((place) => !isOneOf(place, replaced)).map(toShortEntry))].sort();
  if (others.length === 0) return;
  const shown = others.slice(0, MOST_NAMED);
  const more = others.length > shown.length ? ` and ${others.length - shown.length} more` : "";
  const files = [lockfile, ...Object.keys(project)].join(" or ");
  throw new SandboxError(
    "permission_denied",
    `${files} names hosts that your configuration of ${tool.name} does not: ${shown.join(", ")}${more}`,
    { hint: `--network allow=${shown.join(",")} lets the run reach them; --no-install leaves the install step out` },
  );
}

function insteadOf(fills: string | undefined): string {
  return fills === undefined ? "" : `; --copy ${fills} copies yours in`;
}
