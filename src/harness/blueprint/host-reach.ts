import { hostFilesOf } from "../home-files.js";
import { type HostWish, KINDS, wishForHosts, wishForSecrets } from "../nodes.js";
import { fields } from "../schema.js";
import type { Blueprint } from "../types.js";

/**
 * The fields of a blueprint by which it gets something of the host. Without trust, a blueprint from a repository gets
 * none of them. A field that is in neither table counts as one of these.
 */
export const REACHES_HOST: ReadonlyMap<string, HostWish> = new Map<string, HostWish>([
  ["sandbox.mounts[].source", (value) => `the path ${String(value)}`],
  ["sandbox.mounts[].writable", (value) => (value === true ? "to write to it" : undefined)],
  ["sandbox.network", (value) => (value === "full" ? "the whole network" : undefined)],
  ["sandbox.allow", wishForHosts],
  ["sandbox.secrets", (value) => wishForSecrets(Object.keys(value as object))],
  ["sandbox.install", (value) => (value === false ? undefined : "a package registry, for its install step")],
  ["sandbox.copy", (value) => `${[value].flat().join(", ")} of your working tree`],
  ["sandbox.home", wishForFiles],
  // The host fetches it, with the user's credentials where it has some.
  ["sandbox.image", (value) => `the image ${String(value)}`],
  ["nodes[].secrets", wishForSecrets],
  ...KINDS.flatMap(({ reaches = {} }) =>
    Object.entries(reaches).map(([field, wish]): [string, HostWish] => [inNode(field), wish]),
  ),
]);

/** The fields that only say what happens in the sandbox, or how the run is described. */
export const HARMLESS: ReadonlySet<string> = new Set([
  ...["$schema", "version", "name", "description", "expectsChanges", "source"],
  ...["type", "description", "required", "default"].map((field) => `inputs{}.${field}`),
  // The entry deny only takes away.
  ...["workspace", "env", "setup", "deny"].map((field) => `sandbox.${field}`),
  ...["memory", "cpus", "pids", "disk"].map((field) => `sandbox.limits.${field}`),
  // Where a mount is seen in the sandbox; its source is what reaches the host.
  "sandbox.mounts[].target",
  ...Object.keys(fields.limits.properties ?? {}).map((field) => `limits.${field}`),
  ...["kind", "id", "name", "description", "when", "needs", "timeout", "continueOnError", "env", "cwd"].map(inNode),
  ...["retry.max", "retry.backoff", "retry.on"].map(inNode),
  ...KINDS.flatMap(({ harmless }) => harmless.map(inNode)),
]);

/** Other names that a document may use; a checked blueprint has only the names on the right. */
export const RENAMED: ReadonlyMap<string, string> = new Map(
  KINDS.flatMap(({ renamed = {} }) =>
    Object.entries(renamed).map(([other, field]): [string, string] => [inNode(other), inNode(field)]),
  ),
);

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

function wishForFiles(value: unknown): string | undefined {
  const files = hostFilesOf(value as Blueprint["sandbox"]["home"]).map(({ file }) => `the file ${file}`);
  return files.length === 0 ? undefined : files.join(", ");
}

function inNode(field: string): string {
  return `nodes[].${field}`;
}
