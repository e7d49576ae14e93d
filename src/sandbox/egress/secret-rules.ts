import { isIP } from "node:net";
import { isAbsolute } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy, SecretRule, SecretSource } from "../../../contracts/types.js";
import * as is from "../../util/schema.js";
import { describe, invalidArgument, type Schema } from "../../util/schema.js";
import { normalizeIPv6, parseAuthority } from "./host-name.js";
import { type EgressPolicy, parseRules } from "./policy.js";

/** A host that a secret goes to. */
export interface SecretHost {
  /** For a wildcard: the rest of the name, with the dot before it. */
  readonly host: string;
  readonly isWildcard: boolean;
  readonly port: number;
}

/** Headers that say where a request goes and how long it is, and so never contain a secret. */
const NO_SECRET_IN =
  /^(?:host|content-length|transfer-encoding|connection|upgrade|te|trailer|expect|keep-alive|proxy-.*)$/i;
const MOST_SECRETS = 64;

const variable = is.matching(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of a variable: letters, digits and _");

const header = is.and(
  is.matching(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "the name of a header, such as x-api-key"),
  (value, name) => {
    if (NO_SECRET_IN.test(value)) throw invalidArgument(name, "a header that can carry a secret", value);
  },
);

const host = is.and(is.text, (value, name) => {
  const fault = hostFault(value);
  if (fault === undefined) return;
  throw new SandboxError("invalid_argument", `Invalid ${name}: expected ${fault.expected}, got ${describe(value)}`, {
    hint: fault.hint,
  });
});

const file = is.and(is.path, (value, name) => {
  if (!isAbsolute(value)) throw invalidArgument(name, "an absolute path", value);
});

const program = is.and(
  is.list<readonly string[]>(is.argument, { minItems: 1 }, { minItems: "a program and its arguments" }),
  ([first = ""], name) => {
    // A path that starts at the current directory may lead into a repository.
    if (first !== "" && (isAbsolute(first) || !first.includes("/"))) return;
    throw invalidArgument(`${name}[0]`, "the name of a program, or its absolute path", first);
  },
);

const fromEnv: Schema<{ env: string }> = is.object({ env: is.required(variable) });
const fromFile: Schema<{ file: string }> = is.object({ file: is.required(file) });
const fromCommand: Schema<{ command: readonly string[]; timeout?: number }> = is.object({
  command: is.required(program),
  timeout: is.timeout,
});

const tokenUrl = is.matching(/^https:\/\/[^\s@#]+$/, "an https:// address");
/** An endpoint that commands reach through the proxy, as the hosts of a secret. */
const loginUrl = is.and(tokenUrl, (value, name) => {
  if (!URL.canParse(value)) throw invalidArgument(name, "an https:// address", value);
  const { host: place, hostname } = new URL(value);
  if (hostname.includes("*") || hostFault(place) !== undefined) {
    throw invalidArgument(name, "an https:// address with the name of a host", value);
  }
});
const fromGoogle: Schema<{ google: { file: string; scopes?: readonly string[] } }> = is.object({
  google: is.required(
    is.object<{ file: string; scopes?: readonly string[] }>({
      file: is.required(file),
      scopes: is.list<readonly string[]>(is.matching(/^[\x21-\x7e]+$/, "a scope: text without spaces")),
    }),
  ),
});
const fromOauth: Schema<{ oauth: { store: string; tokenUrl: string; clientId?: string; scope?: string } }> = is.object({
  oauth: is.required(
    is.object<{ store: string; tokenUrl: string; clientId?: string; scope?: string }>({
      store: is.required(file),
      tokenUrl: is.required(tokenUrl),
      clientId: is.matching(/^[\x20-\x7e]+$/, "the id of a client"),
      scope: is.matching(/^[\x20-\x7e]+$/, "scopes with spaces between them"),
    }),
  ),
});

const SOURCES: Readonly<Record<string, (value: unknown, name: string) => void>> = {
  env: (value, name) => is.check(value, fromEnv, name),
  file: (value, name) => is.check(value, fromFile, name),
  command: (value, name) => is.check(value, fromCommand, name),
  google: (value, name) => is.check(value, fromGoogle, name),
  oauth: (value, name) => is.check(value, fromOauth, name),
};

const source: Schema<SecretSource> = is.custom(
  (value, name) => {
    if (typeof value !== "object" || value === null) throw invalidArgument(name, "an object", value);
    const [kind = "", ...more] = Object.keys(SOURCES).filter((each) => Object.hasOwn(value, each));
    const check = SOURCES[kind];
    if (check === undefined || more.length > 0) {
      throw invalidArgument(name, "one of env, file, command, google and oauth", value);
    }
    check(value, name);
  },
  { oneOf: [fromEnv, fromFile, fromCommand, fromGoogle, fromOauth] },
);

/** What a blueprint can say about a secret: everything but where this machine has it. */
export const namedSecret: Schema<Omit<SecretRule, "from" | "force">> = is.object({
  hosts: is.required(
    is.list<readonly string[]>(host, { minItems: 1 }, { minItems: "at least one host" }),
    "at least one host",
  ),
  header,
  in: is.oneOf("header", "query", "body"),
  sign: is.oneOf("aws"),
  login: is.object<{ tokenUrls: readonly string[] }>({
    tokenUrls: is.required(is.list<readonly string[]>(loginUrl, { minItems: 1 }, { minItems: "at least one address" })),
  }),
  git: is.matching(/^[A-Za-z0-9._@-]{1,64}$/, "a user name: letters, digits and ._@-"),
  prefix: is.matching(/^[A-Za-z0-9._~-]{1,64}$/, "at most 64 letters, digits and ._~-"),
});

const secret: Schema<SecretRule> = is.and(
  is.noted(namedSecret as unknown as Schema<SecretRule>, {
    properties: { ...namedSecret.properties, from: source, force: is.flag },
  }),
  checkTogether,
);

/** The secrets of a sandbox, as an option. */
export const secretsSchema: Schema<Readonly<Record<string, SecretRule>>> = is.record(secret, variable, {
  maxProperties: MOST_SECRETS,
});

/** Throws `invalid_argument` for a variable that two secrets would set, or that `env` has, too. */
export function assertVariables(
  secrets: Readonly<Record<string, SecretRule>>,
  env: Readonly<Record<string, string>>,
): void {
  const variables = variablesOf(secrets);
  const double = variables.find((name, at) => variables.indexOf(name) !== at);
  if (double !== undefined) {
    throw new SandboxError("invalid_argument", `Variable ${double} is in secrets twice`, {
      hint: 'a secret with sign: "aws" also sets AWS_ACCESS_KEY_ID',
    });
  }
  const twice = variables.find((name) => Object.hasOwn(env, name));
  if (twice !== undefined) {
    throw new SandboxError("invalid_argument", `Variable ${twice} is in secrets and in env`, {
      hint: "leave it out of env: commands get a placeholder",
    });
  }
}

/** The variables that commands get for these secrets. */
function variablesOf(secrets: Readonly<Record<string, SecretRule>>): string[] {
  const rules = Object.entries(secrets).filter(([, { login }]) => login === undefined);
  const names = rules.flatMap(([name, { sign }]) => (sign === "aws" ? [name, "AWS_ACCESS_KEY_ID"] : [name]));
  return rules.some(([, { git }]) => git !== undefined) ? [...names, "GIT_CONFIG_COUNT"] : names;
}

/** Throws `invalid_argument` for fields of a secret that do not go together. */
export function checkTogether(rule: SecretRule, name: string): void {
  if (rule.header !== undefined && (rule.in ?? "header") !== "header") {
    throw new SandboxError("invalid_argument", `Invalid ${name}: header does not go together with in: "${rule.in}"`, {
      hint: "leave one of the two out",
    });
  }
  checkSigning(rule, name);
  checkLogin(rule, name);
  if (
    rule.git !== undefined &&
    ((rule.in ?? "header") !== "header" || !/^authorization$/i.test(rule.header ?? "authorization"))
  ) {
    throw new SandboxError("invalid_argument", `Invalid ${name}: git sends a secret in the header Authorization only`, {
      hint: "leave header and in out",
    });
  }
  const wildcard = rule.hosts.find((entry) => entry.startsWith("*."));
  if (wildcard === undefined || rule.force === true) return;
  throw new SandboxError("invalid_argument", `Invalid ${name}.hosts: ${describe(wildcard)} is more than one host`, {
    hint: "name each host; or, if you control every name below it, add force: true",
  });
}

function checkSigning(
  { sign, header: named, in: place, prefix, git, from = { env: "" } }: SecretRule,
  name: string,
): void {
  if (sign === undefined) return;
  const refuse = (why: string): SandboxError => new SandboxError("invalid_argument", `Invalid ${name}: ${why}`);
  const other = Object.entries({ header: named, in: place, prefix, git }).find(([, value]) => value !== undefined)?.[0];
  if (other !== undefined) throw refuse(`${other} does not go together with sign: "${sign}"`);
  if (!/(?:^|\.)AWS_SECRET_ACCESS_KEY$/.test(name)) throw refuse('sign: "aws" is for AWS_SECRET_ACCESS_KEY only');
  if ("google" in from || "oauth" in from) throw refuse('sign: "aws" needs keys, from env, file or command');
}

function checkLogin({ login, hosts: _hosts, force: _force, ...rest }: SecretRule, name: string): void {
  const other = Object.entries(rest).find(([, value]) => value !== undefined)?.[0];
  if (login === undefined || other === undefined) return;
  throw new SandboxError("invalid_argument", `Invalid ${name}: ${other} does not go together with login`);
}

function hostFault(entry: string): { expected: string; hint?: string } | undefined {
  const expected = 'a name such as "api.example.com" or "api.example.com:8443"';
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)/i.exec(entry) ?? [];
  if (scheme !== undefined) return { expected: "a name without a scheme", ...(rest && { hint: `write "${rest}"` }) };
  if (entry === "*") return { expected, hint: "a secret that goes to every host is no secret" };
  if (normalizeIPv6(entry) !== undefined) return { expected: "a name, not an address" };
  const found = parseSecretHost(entry);
  if (found === undefined) return { expected };
  if (isIP(found.host) > 0) return { expected: "a name, not an address" };
  return found.host.replace(/^\./, "").includes(".") ? undefined : { expected: "a name with a dot in it" };
}

/** Parses a checked entry of `hosts`; undefined for anything else. */
export function parseSecretHost(entry: string): SecretHost | undefined {
  const isWildcard = entry.startsWith("*.");
  const found = parseAuthority(isWildcard ? entry.slice(2) : entry);
  if (found === undefined) return undefined;
  return { host: isWildcard ? `.${found.host}` : found.host, isWildcard, port: found.port ?? 443 };
}

/** Whether a secret goes to this host, as it was normalized, at this port. */
export function isFor(entry: SecretHost, asked: string, port: number): boolean {
  return entry.port === port && (entry.isWildcard ? asked.endsWith(entry.host) : asked === entry.host);
}

/** Throws `invalid_argument` for a secret whose hosts the network rule of the sandbox does not allow: it could never be used. */
export function assertReachable(secrets: Readonly<Record<string, SecretRule>>, network: NetworkPolicy): void {
  const wanted = Object.entries(secrets).flatMap(([name, { hosts, login }]) =>
    [...hosts, ...(login?.tokenUrls.map((url) => new URL(url).host) ?? [])].map((entry) => ({ name, entry })),
  );
  const policy = typeof network === "string" ? undefined : parseRules(network, { isHostLoopbackKnown: true });
  const missing = wanted.filter(({ entry }) => !policy || !isReached(entry, policy));
  const [first] = missing;
  if (first === undefined) return;
  const hosts = [...new Set(missing.map(({ entry }) => entry))];
  const hint = `allow ${hosts.length === 1 ? "it" : "them"}: network: { allow: ${JSON.stringify(hosts)} }, or --network allow=${hosts}`;
  if (typeof network !== "string") {
    const message = `Secret ${first.name} is for ${first.entry}, which network.allow does not have`;
    throw new SandboxError("invalid_argument", message, { hint });
  }
  const why = network === "none" ? "nothing is reached" : "commands reach every host without the proxy";
  throw new SandboxError("invalid_argument", `Secret ${first.name} can't be used with network "${network}": ${why}`, {
    hint,
  });
}

function isReached(entry: string, policy: EgressPolicy): boolean {
  const { host = "", port = 0, isWildcard = false } = parseSecretHost(entry) ?? {};
  return policy.isAllowed(isWildcard ? `any${host}` : host, port);
}
