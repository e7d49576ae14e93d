import { readFileSync, statSync } from "node:fs";
import { extname } from "node:path";
import { SandboxError } from "../../sandbox/errors.js";
import type { AgentTask, Blueprint } from "../blueprint-types.js";
import { blueprintError } from "./blueprint-error.js";
import { isInClone } from "./cloned.js";
import { withSource } from "./define.js";
import { type FindOptions, type FoundBlueprint, findBlueprint } from "./find.js";
import { importBlueprint } from "./import-code.js";
import { MAX_DOCUMENT_BYTES, readBlueprint } from "./read.js";

/** How a blueprint is loaded. */
export interface LoadOptions extends FindOptions {
  /** Allow code from a cloned repository, and documents from there that want something of the host. */
  readonly trust?: boolean | undefined;
}

/** Finds a blueprint by name or path and reads it. What others wrote gets nothing of the host without trust. */
export async function loadBlueprint(name: string, options: LoadOptions = {}): Promise<Blueprint> {
  return await loadFound(findBlueprint(name, options), options);
}

/** Reads a blueprint that was found. */
export async function loadFound(found: FoundBlueprint, { trust = false }: LoadOptions = {}): Promise<Blueprint> {
  const { path, origin } = found;
  const isForeign = !trust && (origin === "path" || origin === "repository") && isInClone(path);
  if (![".yaml", ".yml", ".json"].includes(extname(path))) {
    if (isForeign) throw untrusted(path, "is code from a cloned repository, and would run on this machine");
    return withSource(await importBlueprint(path), path);
  }
  if (statSync(path).size > MAX_DOCUMENT_BYTES) {
    throw new SandboxError(
      "limit_exceeded",
      `${path} is larger than ${MAX_DOCUMENT_BYTES} bytes, too large for a blueprint`,
    );
  }
  const { blueprint, faults } = await readBlueprint(readFileSync(path, "utf8"), path);
  if (blueprint === undefined) throw blueprintError(faults);
  const wish = isForeign && origin === "repository" ? wishOf(blueprint) : undefined;
  if (wish !== undefined) throw untrusted(path, `comes from a cloned repository and wants ${wish}`);
  return withSource(blueprint, path);
}

function untrusted(path: string, why: string): SandboxError {
  return new SandboxError("permission_denied", `The blueprint ${path} ${why}`, {
    operation: "blueprint",
    hint: "read it, then say --trust (trust: true)",
  });
}

/** What a blueprint asks of the host beyond the sandbox itself; undefined when nothing. */
function wishOf({ sandbox, nodes }: Blueprint): string | undefined {
  if (sandbox.mounts.length > 0) return `the directory ${sandbox.mounts[0]?.source}`;
  if (sandbox.network === "full") return "the whole network";
  const tasks: (AgentTask & { secrets: readonly string[] })[] = [];
  for (const node of nodes) {
    if (node.kind === "agent") tasks.push(node);
    if (node.kind === "gate" && node.onFail !== undefined) tasks.push(node.onFail);
  }
  const host = [...sandbox.allow, ...tasks.flatMap(({ network }) => network.allow)][0];
  if (host !== undefined) return `the host ${host}`;
  const secret = [...nodes, ...tasks].flatMap(({ secrets }) => secrets)[0];
  return secret === undefined ? undefined : `the secret ${secret}`;
}
