import type { Blueprint } from "../types.js";

/** Says what a value asks of the host; undefined when it asks for nothing. */
type Wish = (value: unknown) => string | undefined;

const hosts: Wish = (value) => listOf("the host", value);
const secrets: Wish = (value) => listOf("the secret", value);
/** An agent gets its key and a way to its service; one that is a program of the blueprint's gets neither. */
const agent: Wish = (value) => (value === "command" ? undefined : `the key and the network of the agent ${value}`);

/**
 * The fields of a blueprint by which it gets something of the host. Without trust, a blueprint from a repository gets
 * none of them. A field that is in neither table counts as one of these.
 */
export const REACHES_HOST: ReadonlyMap<string, Wish> = new Map<string, Wish>([
  ["sandbox.mounts[].source", (value) => `the path ${String(value)}`],
  ["sandbox.mounts[].writable", (value) => (value === true ? "to write to it" : undefined)],
  ["sandbox.network", (value) => (value === "full" ? "the whole network" : undefined)],
  ["sandbox.allow", hosts],
  // The host fetches it, with the user's credentials where it has some.
  ["sandbox.image", (value) => `the image ${String(value)}`],
  ["nodes[].secrets", secrets],
  ["nodes[].agent", agent],
  ["nodes[].network.allow", hosts],
  ["nodes[].onFail.secrets", secrets],
  ["nodes[].onFail.agent", agent],
  ["nodes[].onFail.network.allow", hosts],
]);

const TASK = ["command", "output", "prompt", "systemPrompt", "model", "tools", "continue"];
const LIMITS = ["wall", "costUsd", "turns", "idle"];
const RUNNABLE = ["id", "name", "run", "shell", "timeout", "env", "cwd"];

/** The fields that only say what happens inside the sandbox, or how the run is described. */
export const HARMLESS: ReadonlySet<string> = new Set([
  ...["$schema", "version", "name", "description", "expectsChanges", "source"],
  ...["type", "description", "required", "default"].map((field) => `inputs{}.${field}`),
  ...["workspace", "env", "setup"].map((field) => `sandbox.${field}`),
  ...["memory", "cpus", "pids", "disk"].map((field) => `sandbox.limits.${field}`),
  // Where inside a mount is seen; its source is what reaches the host.
  "sandbox.mounts[].target",
  ...LIMITS.map((field) => `limits.${field}`),
  ...["kind", "description", "when", "needs", "continueOnError", "message", "protect"].map(
    (field) => `nodes[].${field}`,
  ),
  ...["max", "backoff", "on"].map((field) => `nodes[].retry.${field}`),
  ...["name", "email"].map((field) => `nodes[].author.${field}`),
  ...[...RUNNABLE, ...TASK].map((field) => `nodes[].${field}`),
  ...RUNNABLE.map((field) => `nodes[].checks[].${field}`),
  ...LIMITS.map((field) => `nodes[].limits.${field}`),
  ...[...TASK, "env", "max", "stopIfNoChange"].map((field) => `nodes[].onFail.${field}`),
  ...LIMITS.map((field) => `nodes[].onFail.limits.${field}`),
]);

/** Other names that a document may use; a checked blueprint has only the names on the right. */
export const RENAMED: ReadonlyMap<string, string> = new Map([
  ["nodes[].steps", "nodes[].checks"],
  ["nodes[].onFailure", "nodes[].onFail"],
  ["nodes[].maxRetries", "nodes[].onFail.max"],
  ["nodes[].allowedTools", "nodes[].tools"],
  ["nodes[].onFail.allowedTools", "nodes[].onFail.tools"],
]);

/** The fields whose keys are names that the blueprint chooses. */
export const MAPS: ReadonlySet<string> = new Set(["inputs"]);

/** All that a blueprint asks of the host, in words. */
export function reachOf(blueprint: Blueprint): string[] {
  return [...new Set(reachBelow(blueprint, ""))];
}

function reachBelow(value: unknown, field: string): string[] {
  if (value === undefined) return [];
  const wish = REACHES_HOST.get(field);
  if (wish !== undefined) return [wish(value) ?? []].flat();
  if (HARMLESS.has(field)) return [];
  if (Array.isArray(value)) return value.flatMap((item) => reachBelow(item, `${field}[]`));
  if (typeof value !== "object" || value === null) return [`the field ${field}`];
  const inner = MAPS.has(field) ? () => `${field}{}` : (key: string) => (field === "" ? key : `${field}.${key}`);
  return Object.entries(value).flatMap(([key, item]) => reachBelow(item, inner(key)));
}

function listOf(what: string, value: unknown): string | undefined {
  const names = Array.isArray(value) ? value.map(String) : [String(value)];
  return names.length === 0 ? undefined : names.map((name) => `${what} ${name}`).join(", ");
}
