import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy, SecretRule } from "../../../contracts/types.js";
import { parseRules } from "../../sandbox/host.js";
import { backendOf } from "../../sandbox.js";
import { defined } from "../../util/defined.js";
import { sandboxOptionsIn } from "../backend-facts.js";
import type { BlueprintNeeds } from "../needs.js";
import { agentOf } from "../nodes.js";
import type { AgentKey, Blueprint, HarnessOptions, SecretReport } from "../types.js";

/** A value may be made when its node runs. */
type Variables = Readonly<Record<string, unknown>>;

/** What is known of a run when its secrets are decided. */
interface Setting {
  readonly needs: BlueprintNeeds;
  /** Of the secrets that nodes and agents need. */
  readonly values: Readonly<Record<string, string>>;
  readonly network: NetworkPolicy;
  readonly backend: string;
}

/**
 * Decides how each secret of a run gets to its commands. Those of the blueprint's sandbox and of the user stay outside. So do the keys of agents,
 * where it is known which host they are for and the backend can keep them there. A node gets what it names itself.
 */
export async function decideSecrets(
  blueprint: Blueprint,
  options: HarnessOptions,
  setting: Setting,
): Promise<{ rules: Record<string, SecretRule>; reports: SecretReport[] }> {
  const rules: Record<string, SecretRule> = { ...blueprint.sandbox.secrets, ...sandboxOptionsIn(options).secrets };
  assertThere(rules);
  const inside: SecretReport[] = [];
  for (const name of Object.keys(setting.values)) {
    if (Object.hasOwn(rules, name)) continue;
    const found = await ruleFor(name, blueprint, options, setting);
    if (typeof found === "string") inside.push({ name, kept: "inside", why: found });
    else rules[name] = found;
  }
  const outside = Object.entries(rules).map(
    ([name, { hosts }]): SecretReport => ({
      name,
      kept: "outside",
      hosts: [...hosts],
    }),
  );
  return { rules, reports: [...outside, ...inside] };
}

/** Before anything is made: the sandbox would refuse it later. */
function assertThere(rules: Readonly<Record<string, SecretRule>>): void {
  for (const [name, { from = { env: name }, login }] of Object.entries(rules)) {
    // A program gets the tokens of a login by itself.
    if (login !== undefined || !("env" in from) || (process.env[from.env] ?? "") !== "") continue;
    throw new SandboxError("unauthenticated", `The sandbox of this blueprint needs ${from.env}, which is not set`, {
      hint: `export ${from.env}=… before the run; commands get a placeholder`,
    });
  }
}

/** How to keep an agent's key outside, or why it goes inside. */
async function ruleFor(
  name: string,
  blueprint: Blueprint,
  options: HarnessOptions,
  { needs, values, network, backend }: Setting,
): Promise<SecretRule | string> {
  const isNamed = blueprint.nodes.some((node) => [...node.secrets, ...(agentOf(node)?.secrets ?? [])].includes(name));
  if (isNamed) return "a node names it";
  const key = needs.agents.flatMap(({ driver }) => driver.keys?.[name] ?? [])[0];
  if (key === undefined) return "it is not known which host it is for";
  const envs = environmentsOf(blueprint, options);
  if (envs.some((env) => Object.hasOwn(env, name))) return "env has it, too";
  if (values[name] !== process.env[name]) return "its value is not in the environment of this process";
  if (!/^[\x21-\x7e]{8,}$/.test(values[name] ?? "")) return "its value is too short, or has odd characters";
  const { secrets, reasons = {} } = (await backendOf(backend)).capabilities(sandboxOptionsIn(options));
  if (secrets !== true) return reasons.secrets ?? `the ${backend} backend can't keep it outside`;
  if (typeof network === "string") return `the network is ${network}`;
  const hosts = hostsOf(key, envs);
  if (hosts === undefined) return `${key.baseUrl} is no address with https`;
  const policy = parseRules(network, { isHostLoopbackKnown: true });
  const missing = hosts.find(({ host, port }) => !policy.isAllowed(host, port));
  if (missing !== undefined) return `network.allow does not have ${missing.host}:${missing.port}`;
  const entries = hosts.map(({ host, port }) => (port === 443 ? host : `${host}:${port}`));
  return { hosts: entries, header: key.header, ...defined({ prefix: key.prefix }) };
}

/** All variables that a run sets for its commands. */
function environmentsOf({ sandbox, nodes }: Blueprint, options: HarnessOptions): Variables[] {
  return [sandbox.env, options.env ?? {}, options.sandbox?.env ?? {}, ...nodes.map(({ env }) => env)];
}

/** Where the value is sent to; undefined if it may go somewhere without TLS, or to an address that is made later. */
function hostsOf(
  { host, baseUrl = "" }: AgentKey,
  envs: readonly Variables[],
): { host: string; port: number }[] | undefined {
  const given = envs.flatMap((env) => env[baseUrl] ?? []);
  if (given.length === 0) return [{ host, port: 443 }];
  const urls = given.map((text) => (typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined));
  if (!urls.every((url) => url?.protocol === "https:" && /\.[a-z]/i.test(url.hostname))) return undefined;
  return urls.flatMap((url) => (url === undefined ? [] : [{ host: url.hostname, port: Number(url.port || 443) }]));
}
