import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { basename, dirname, extname } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { openBeneath, readIn } from "../../util/beneath.js";
import { CODE, isCode } from "../../util/is-code.js";
import { isWithin, realPathOf, repositoryOf } from "../../util/repository-of.js";
import type { Blueprint } from "../types.js";
import { blueprintError } from "./blueprint-error.js";
import { bundleCode, type CodeBundle } from "./code-bundle.js";
import { withSource } from "./define.js";
import { type FindOptions, type FoundBlueprint, findBlueprint, REPOSITORY_FOLDER } from "./find.js";
import { reachOf } from "./host-reach.js";
import { importBlueprint } from "./import-code.js";
import { MAX_DOCUMENT_BYTES, readBlueprint } from "./read.js";
import { isTrusted, rememberTrust, unpackTrusted } from "./trust-store.js";

/** How a blueprint is loaded. */
export interface LoadOptions extends FindOptions {
  /** Allow code from a repository, and documents from there that want something of the host; remembered for this content. */
  readonly trust?: boolean | undefined;
  /** Only to look at it: a document may want what it likes. Code still has to be trusted, because it has to run. */
  readonly inspect?: boolean | undefined;
}

const DOCUMENTS: readonly string[] = [".yaml", ".yml", ".json"];
const MOST_SHOWN = 20;
/** From a repository, without trust: it asked for nothing of the host, and must not get anything. */
const confined = new WeakSet<Blueprint>();
const notes = new WeakMap<Blueprint, string>();
const codes = new WeakMap<Blueprint, string>();

/** Finds a blueprint by name or path and reads it. What others wrote gets nothing of the host without trust. */
export async function loadBlueprint(name: string, options: LoadOptions = {}): Promise<Blueprint> {
  return await loadFound(findBlueprint(name, options), options);
}

/** Reads a blueprint that was found. */
export async function loadFound(found: FoundBlueprint, options: LoadOptions = {}): Promise<Blueprint> {
  const { path } = found;
  if (isCode(path)) return await loadCode(found, options);
  if (!isDocument(path)) {
    throw new SandboxError("invalid_argument", `The extension of ${path} is neither that of a document nor of code`, {
      hint: `rename it: ${DOCUMENTS.join(", ")} for a document; ${CODE.join(", ")} for code`,
    });
  }
  const bytes = readFound(found);
  const { blueprint, faults } = await readBlueprint(Buffer.from(bytes).toString("utf8"), path);
  if (blueprint === undefined) throw blueprintError(faults);
  const known = withSource(blueprint, path);
  if (options.inspect === true || topOf(found, options) === undefined) return known;
  const sha256 = createHash("sha256").update("glovebox document blueprint 1\0").update(bytes).digest("hex");
  if (isTrusted(sha256)) return known;
  if (options.trust === true) {
    await rememberTrust(sha256, path, [path]);
    notes.set(known, `trusted from now on: ${path}, sha256 ${sha256}`);
    return known;
  }
  const wishes = reachOf(blueprint);
  if (wishes.length > 0) {
    throw untrusted(`The blueprint ${path} comes from a repository and wants ${wishes.join(", ")} (sha256 ${sha256})`);
  }
  confined.add(known);
  return known;
}

/** Whether a blueprint is data. */
export function isDocument(path: string): boolean {
  return DOCUMENTS.includes(extname(path));
}

/** The bytes of a document that was found; in a repository no link is followed to it. */
export function readFound({ path, origin }: FoundBlueprint): Uint8Array {
  if (origin === "repository") {
    const top = REPOSITORY_FOLDER.reduce((at) => dirname(at), dirname(path));
    using folder = openBeneath(top, REPOSITORY_FOLDER);
    return readIn(folder, basename(path), MAX_DOCUMENT_BYTES);
  }
  const file = openSync(path, "r");
  try {
    if (fstatSync(file).size <= MAX_DOCUMENT_BYTES) return readFileSync(file);
  } finally {
    closeSync(file);
  }
  throw new SandboxError(
    "limit_exceeded",
    `${path} is larger than ${MAX_DOCUMENT_BYTES} bytes, too large for a blueprint`,
  );
}

/** Refuses what a blueprint that was not trusted would get by the way it is run, for example by another agent. */
export function assertConfined(blueprint: Blueprint, wishes: readonly string[]): void {
  if (!confined.has(blueprint) || wishes.length === 0) return;
  throw untrusted(
    `The blueprint ${blueprint.source ?? blueprint.name} comes from a repository and would get ${wishes.join(", ")}`,
  );
}

/** Whether a blueprint comes from a repository and was not trusted, so that it gets nothing of the host. */
export function isConfined(blueprint: Blueprint): boolean {
  return confined.has(blueprint);
}

/** What this user has just trusted, in words; undefined when the blueprint needed no trust, or had it before. */
export function trustNote(blueprint: Blueprint): string | undefined {
  return notes.get(blueprint);
}

/** The hash of all code that a blueprint from a repository consists of; undefined for others. */
export function codeHashOf(blueprint: Blueprint): string | undefined {
  return codes.get(blueprint);
}

async function loadCode(found: FoundBlueprint, options: LoadOptions): Promise<Blueprint> {
  const { path } = found;
  const top = topOf(found, options);
  if (top === undefined) return withSource(await importBlueprint(path, path), path);
  if (found.origin === "repository") readFound(found);
  const bundle = bundleCode(path, top);
  const isKnown = isTrusted(bundle.sha256);
  if (!isKnown && options.trust !== true) throw untrusted(describeCode(path, bundle));
  if (!isKnown) await rememberTrust(bundle.sha256, path, [...bundle.files.keys()]);
  const blueprint = withSource(await importBlueprint(unpackTrusted(bundle), path), path);
  codes.set(blueprint, bundle.sha256);
  if (!isKnown) notes.set(blueprint, `trusted from now on: ${path} with ${listOf(bundle)}, sha256 ${bundle.sha256}`);
  return blueprint;
}

/** The repository that a blueprint comes from; what is built in comes with this program. */
function topOf({ path, origin }: FoundBlueprint, { repoDir }: LoadOptions): string | undefined {
  if (origin === "built-in") return undefined;
  const project = origin === "repository" ? dirname(dirname(dirname(path))) : repoDir;
  const top = repositoryOf(path, project);
  // A link out of a repository: what it imports lies beside the file that it leads to.
  const real = realPathOf(path);
  return top === undefined || isWithin(real, top) ? top : dirname(real);
}

function describeCode(path: string, bundle: CodeBundle): string {
  const what = `${listOf(bundle)} (sha256 ${bundle.sha256})`;
  return `The blueprint ${path} is code from a repository, and would run on this machine: ${what}`;
}

/** The files of a bundle for people: each one, and packages as a whole. */
function listOf({ files }: CodeBundle): string {
  const packages = new Map<string, number>();
  const own: string[] = [];
  for (const name of [...files.keys()].sort()) {
    const folder = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(name)?.[0];
    if (folder !== undefined) packages.set(folder, (packages.get(folder) ?? 0) + 1);
    // It only says how others are read.
    else if (basename(name) !== "package.json") own.push(name);
  }
  const shown = [...own, ...[...packages].map(([name, count]) => `${name} (${count} files)`)];
  if (shown.length > MOST_SHOWN) shown.splice(MOST_SHOWN, shown.length, `and ${shown.length - MOST_SHOWN} more`);
  return shown.join(", ");
}

function untrusted(message: string): SandboxError {
  return new SandboxError("permission_denied", message, {
    operation: "blueprint",
    hint: "read it, then pass --trust (trust: true); it is remembered for exactly this content",
  });
}
