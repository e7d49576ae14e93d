import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy, SecretRule } from "../../../contracts/types.js";
import { parseRules } from "../../sandbox/host.js";
import { backendOf } from "../../sandbox.js";
import { defined } from "../../util/defined.js";
import { accessOf, httpsHost } from "../agents.js";
import { sandboxOptionsIn } from "../backend-facts.js";
import { hostFilesOf } from "../home-files.js";
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
  /** The files for HOME. */
  readonly home: Readonly<Record<string, string | Uint8Array>>;
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
  const companions = companionsIn(setting);
  for (const name of Object.keys(setting.values)) {
    if (Object.hasOwn(rules, name) || companions.has(name)) continue;
    const found = await ruleFor(name, blueprint, options, setting);
    if (typeof found === "string") inside.push({ name, kept: "inside", why: found });
    else rules[name] = found;
  }
  for (const [name, main] of companions) {
    if (!Object.hasOwn(rules, main)) inside.push({ name, kept: "inside", why: `it belongs to ${main}` });
  }
  for (const { path, file } of hostFilesOf(blueprint.sandbox.home)) {
    inside.push({ name: `~/${path}`, kept: "inside", why: `a copy of ${file}, as sandbox.home says` });
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

/** The secrets whose values the sandbox fetches from somewhere else than their own variables. */
export function fetchedElsewhere(rules: Readonly<Record<string, SecretRule>> = {}): string[] {
  return Object.entries(rules).flatMap(([name, { from }]) => (from === undefined ? [] : [name]));
}

/** The variables that go the way of another one, by their names. */
function companionsIn({ needs, values }: Setting): Map<string, string> {
  const keys = needs.agents.flatMap(({ access }) => Object.entries(access.keys ?? {}));
  const others = keys
    .filter(([main]) => Object.hasOwn(values, main))
    .flatMap(([main, key]) => companionsOf(key).map((name): [string, string] => [name, main]));
  return new Map(others.filter(([name]) => Object.hasOwn(values, name)));
}

function companionsOf({ with: always = [], maybeWith = [] }: AgentKey): string[] {
  return [...always, ...maybeWith];
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
  setting: Setting,
): Promise<SecretRule | string> {
  const { values, network, backend } = setting;
  const keys = keysOf(name, setting);
  const [key] = keys;
  const all = [name, ...keys.flatMap(companionsOf)];
  const named = blueprint.nodes.flatMap((node) => [...node.secrets, ...(agentOf(node)?.secrets ?? [])]);
  if (named.includes(name)) return "a node names it";
  if (key === undefined) return "it is not known which host it is for";
  const other = all.find((each) => named.includes(each));
  if (other !== undefined) return `a node names ${other}`;
  const envs = environmentsOf(blueprint, options);
  if (all.some((each) => envs.some((env) => Object.hasOwn(env, each)))) return "env has it, too";
  if (all.some((each) => (values[each] ?? "") !== (process.env[each] ?? ""))) {
    return "its value is not in the environment of this process";
  }
  if (!/^[\x21-\x7e]{8,}$/.test(values[name] ?? "")) return "its value is too short, or has odd characters";
  const { secrets, reasons = {} } = (await backendOf(backend)).capabilities(sandboxOptionsIn(options));
  if (secrets !== true) return reasons.secrets ?? `the ${backend} backend can't keep it outside`;
  if (typeof network === "string") return `the network is ${network}`;
  const found = keys.map((each) => hostsOf(each, envs));
  const unknown = found.find((each) => typeof each === "string");
  if (typeof unknown === "string") return unknown;
  const hosts = [...new Set(found.flat())];
  const policy = parseRules(network, { isHostLoopbackKnown: true });
  const missing = hosts.map(toTarget).find(({ host, port }) => !policy.isAllowed(host, port));
  if (missing !== undefined) return `network.allow does not have ${missing.host}:${missing.port}`;
  // Where the agents of a run send it in different ways, it may be anywhere in the head of a request.
  const [header, prefix] = [shared(keys.map((each) => each.header)), shared(keys.map((each) => each.prefix))];
  return { hosts, ...defined({ header, sign: key.sign, prefix }) };
}

/** Where each agent of the run sends it, with what the files of its HOME say. */
function keysOf(name: string, { needs, home }: Setting): AgentKey[] {
  const texts = Object.fromEntries(
    Object.entries(home).map(([path, content]) => [path, Buffer.from(content).toString("utf8")]),
  );
  return needs.agents.flatMap(({ driver, setting }) => {
    const { keys = {} } = accessOf(driver, { ...setting, home: texts });
    return keys[name] ?? [];
  });
}

/** The value that all have. */
function shared(values: readonly (string | undefined)[]): string | undefined {
  const [first] = values;
  return values.every((value) => value === first) ? first : undefined;
}

function toTarget(entry: string): { host: string; port: number } {
  const [host = "", port = "443"] = entry.split(":");
  return { host, port: Number(port) };
}

/** All variables that a run sets for its commands. */
function environmentsOf({ sandbox, nodes }: Blueprint, options: HarnessOptions): Variables[] {
  return [
    sandbox.env,
    options.env ?? {},
    options.sandbox?.env ?? {},
    ...nodes.flatMap((node) => [node.env, agentOf(node)?.env ?? {}]),
  ];
}

/** Where the value is sent to, as `host` or `host:port`; or why that is not known. */
function hostsOf(key: AgentKey, envs: readonly Variables[]): string[] | string {
  const { host, otherHosts = [], baseUrl = "", config = "", unknown } = key;
  if (unknown !== undefined) return unknown;
  const isMadeLater = envs.some((env) => Object.hasOwn(env, config) && !isPlain(env[config]));
  if (isMadeLater) return `${config} is made while the run goes on`;
  const given = envs.flatMap((env) => env[baseUrl] ?? []);
  if (given.length === 0) {
    return host === undefined ? `${baseUrl} does not say which host it is for` : [host, ...otherHosts];
  }
  const own = given.map((text) => (typeof text === "string" ? httpsHost(text) : undefined));
  return own.every((each) => each !== undefined) ? [...own, ...otherHosts] : `${baseUrl} is no address with https`;
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" && !value.includes("{{");
}
