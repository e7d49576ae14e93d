import { Refusal } from "./refusal.js";

/** What a request or an answer says. */
export type Json = Readonly<Record<string, unknown>>;

type Rule = (value: unknown) => boolean;

const MAX_PORTS = 15;
const MAX_TAGS = 5;
const LEAST_TIMEOUT = 1_000;
const LEAST_EXPIRATION = 86_400_000;

const isText: Rule = (value) => typeof value === "string" && value !== "";
const isFlag: Rule = (value) => typeof value === "boolean";
const isWhole: Rule = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isTimeout: Rule = (value) => isWhole(value) && (value as number) >= LEAST_TIMEOUT;
/** Never, or a day at least. */
const isExpiration: Rule = (value) => value === 0 || (isWhole(value) && (value as number) >= LEAST_EXPIRATION);
const isObject: Rule = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isTexts: Rule = (value) => Array.isArray(value) && value.every((each) => typeof each === "string");
const isDictionary: Rule = (value) =>
  isObject(value) && Object.values(value as Json).every((each) => typeof each === "string");
const isPort: Rule = (value) => isWhole(value) && (value as number) >= 1 && (value as number) <= 65_535;
const isPorts: Rule = (value) =>
  Array.isArray(value) &&
  value.length <= MAX_PORTS &&
  value.every(isPort) &&
  new Set(value as unknown[]).size === value.length;
const isTags: Rule = (value) => isDictionary(value) && Object.keys(value as Json).length <= MAX_TAGS;
const isName: Rule = (value) => typeof value === "string" && /^[a-zA-Z0-9_-]{1,128}$/.test(value);
const isResources: Rule = (value) => isObject(value) && has(value as Json, { vcpus: isWhole, memory: isWhole });
const isRetention: Rule = (value) =>
  isObject(value) &&
  has(value as Json, { count: isWhole, expiration: isExpiration, deleteEvicted: isFlag }) &&
  Number((value as Json)["count"]) >= 1 &&
  Number((value as Json)["count"]) <= 10;
/** The two modes, or hosts and networks; nothing else. */
const isPolicy: Rule = (value) => {
  if (!isObject(value)) return false;
  const policy = value as Json;
  if ("mode" in policy) return ["allow-all", "deny-all"].includes(String(policy["mode"]));
  return has(policy, { allow: (allow) => isTexts(allow) || isObject(allow), subnets: isObject });
};
const isSource: Rule = (value) => {
  if (!isObject(value)) return false;
  const source = value as Json;
  if (source["type"] === "snapshot") return has(source, { type: isText, snapshotId: isText });
  const fields = { type: isText, url: isText, depth: isWhole, revision: isText, username: isText, password: isText };
  return ["git", "tarball"].includes(String(source["type"])) && has(source, fields);
};

const CREATE: Readonly<Record<string, Rule>> = {
  projectId: isText,
  ports: isPorts,
  source: isSource,
  timeout: isTimeout,
  resources: isResources,
  runtime: isText,
  image: isText,
  name: isName,
  persistent: isFlag,
  networkPolicy: isPolicy,
  env: isDictionary,
  tags: isTags,
  snapshotExpiration: isExpiration,
  keepLastSnapshots: isRetention,
  region: isText,
};

const UPDATE: Readonly<Record<string, Rule>> = {
  persistent: isFlag,
  resources: isResources,
  timeout: isTimeout,
  networkPolicy: isPolicy,
  tags: isTags,
  ports: isPorts,
  snapshotExpiration: isExpiration,
  keepLastSnapshots: (value) => value === null || isRetention(value),
  currentSnapshotId: isText,
  region: isText,
};

const COMMAND: Readonly<Record<string, Rule>> = {
  command: isText,
  args: isTexts,
  cwd: (value) => typeof value === "string" && value.startsWith("/"),
  env: isDictionary,
  sudo: isFlag,
  wait: isFlag,
  logs: isFlag,
  timeout: isWhole,
};

/** Refuses the order for a new sandbox where the service would. */
export function checkCreate(line: string, body: Json): void {
  check(body, CREATE);
  demand(body["projectId"] !== undefined, "projectId is missing");
  // What has a runtime is made by the older endpoint, and nothing else is.
  demand((body["runtime"] !== undefined) === line.includes("/v2/"), "wrong endpoint");
  demand(body["runtime"] === undefined || body["image"] === undefined, "runtime and image exclude each other");
  const isFromSnapshot = (body["source"] as Json | undefined)?.["type"] === "snapshot";
  const hasImage = body["runtime"] !== undefined || body["image"] !== undefined;
  demand(!isFromSnapshot || !hasImage, "a snapshot has its own image");
}

/** Refuses a change of a sandbox where the service would. */
export function checkUpdate(body: Json): void {
  check(body, UPDATE);
}

/** Refuses the order for a command where the service would. */
export function checkCommand(body: Json): void {
  check(body, COMMAND);
  demand(body["command"] !== undefined, "command is missing");
}

/** Refuses a policy where the service would. */
export function checkPolicy(body: Json): void {
  demand(isPolicy(body), "the network policy is not valid");
}

/** Refuses the order for a snapshot where the service would. */
export function checkSnapshot(body: Json): void {
  check(body, { expiration: isExpiration });
}

/** Refuses a number of milliseconds that is none. */
export function checkDuration(body: Json): void {
  check(body, { duration: isWhole });
  demand(Number(body["duration"]) > 0, "duration must be positive");
}

function check(body: Json, rules: Readonly<Record<string, Rule>>): void {
  for (const [name, value] of Object.entries(body)) {
    const rule = rules[name];
    demand(rule !== undefined, `should NOT have additional property \`${name}\``);
    demand(rule?.(value) === true, `\`${name}\` is not valid: ${JSON.stringify(value)}`);
  }
}

function has(value: Json, rules: Readonly<Record<string, Rule>>): boolean {
  return Object.entries(value).every(([name, each]) => rules[name]?.(each) === true);
}

function demand(isMet: boolean, message: string): void {
  if (!isMet) throw new Refusal(400, "bad_request", `Invalid request: ${message}`);
}
