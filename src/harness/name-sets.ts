import { join } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import { nearestName } from "../util/nearest.js";
import { repositoryOf } from "../util/repository-of.js";
import { agentHosts } from "./agents.js";
import { registriesOf, toolNames, userConfig } from "./install.js";

/** Names of hosts that belong together. */
export interface NameSet {
  /** As it is written behind `@`. */
  readonly name: string;
  /** `agents`: what a coding agent needs of its provider. `packages`: where a package manager gets packages from, by the user's own configuration. */
  readonly for: "agents" | "packages";
  /** Entries of `network.allow`. */
  readonly allow: readonly string[];
  /** Why there are none. */
  readonly reason?: string;
}

/** Whether there is a set of this name. */
export function isNameSet(name: string): boolean {
  return Object.hasOwn(agentHosts(), name) || toolNames().includes(name);
}

/** Every set. The package managers are asked, so it takes a moment. */
export async function listNameSets(signal?: AbortSignal): Promise<NameSet[]> {
  const names = [...Object.keys(agentHosts()), ...toolNames()];
  return await Promise.all(names.map((name) => findNameSet(name, signal)));
}

/** One set. An unknown name is `invalid_argument`. */
export async function findNameSet(name: string, signal?: AbortSignal): Promise<NameSet> {
  const agents = agentHosts();
  const allow = Object.hasOwn(agents, name) ? agents[name] : undefined;
  if (allow !== undefined) return { name, for: "agents", allow };
  if (!toolNames().includes(name)) {
    const close = nearestName(name, [...Object.keys(agents), ...toolNames()]);
    throw new SandboxError("invalid_argument", `There is no set of names "@${name}"`, {
      hint: close === undefined ? "glovebox net --sets lists them" : `did you mean @${close}?`,
    });
  }
  // Nothing of the repository around decides: it may be a stranger's.
  const repository = repositoryOf(join(process.cwd(), name));
  const found = await registriesOf(name, userConfig(repository, signal === undefined ? {} : { signal }));
  return { name, for: "packages", ...found };
}
