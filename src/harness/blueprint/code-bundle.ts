import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { SandboxError } from "../../../contracts/errors.js";
import { BundleDraft, SCANNED, TRIED } from "./bundle-draft.js";
import { addPackage, entriesOf, findPackage, packageNameOf } from "./code-packages.js";
import { scanImports } from "./scan-imports.js";

/** Code from a repository with everything that it imports from there, as it was read. */
export interface CodeBundle {
  /** Of all names and bytes. */
  readonly sha256: string;
  /** The file that is run, among `files`. */
  readonly entry: string;
  /** By their path from the top of the repository. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Packages that are reached by a link, by the path of the link; where it leads is relative to that. */
  readonly links: ReadonlyMap<string, string>;
}

/** Reads a blueprint that is code, and all that it imports from its repository. Runs nothing. */
export function bundleCode(path: string, top: string): CodeBundle {
  const root = realpathSync(top);
  const draft = new BundleDraft(root);
  const entry = relative(root, realpathSync(path));
  const waiting = [entry];
  const seen = new Set<string>();
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name)) continue;
    seen.add(name);
    const bytes = draft.files.get(name) ?? takeFile(draft, name);
    if (!SCANNED.test(name)) continue;
    const { specifiers, assets, computed } = scanImports(Buffer.from(bytes).toString("utf8"));
    if (computed[0] !== undefined)
      throw refused(draft, name, `loads code by a name that it computes, in line ${computed[0]}`);
    for (const specifier of specifiers) {
      const isRelative = /^\.{1,2}(\/|$)/.test(specifier);
      waiting.push(...(isRelative ? besides(draft, name, specifier) : inPackage(draft, name, specifier)));
    }
    for (const asset of assets) waiting.push(...besides(draft, name, asset, true));
  }
  addScope(draft, ".");
  return { sha256: hashOf(draft, entry), entry, files: draft.files, links: draft.links };
}

/** The file of the repository that a relative specifier names, if there is one. */
function besides(draft: BundleDraft, from: string, specifier: string, isData = false): string[] {
  const path = pathAt(specifier, join(draft.top, from));
  for (const suffix of TRIED) {
    const name = path === undefined ? ".." : relative(draft.top, path + suffix);
    if (name.startsWith("..") && isData) return [];
    if (name.startsWith("..")) throw refused(draft, from, `imports "${specifier}", which is not in its repository`);
    if (name === "" || basename(name) === "package.json") continue;
    if (draft.files.has(name) || draft.read(name) !== undefined) return [name];
  }
  return [];
}

function pathAt(specifier: string, file: string): string | undefined {
  try {
    return fileURLToPath(new URL(specifier, pathToFileURL(file)));
  } catch {
    // Not a file, or one whose name no path can spell.
    return undefined;
  }
}

/** Takes the package that a specifier names, if the repository has it; gives those of its files that may be loaded. */
function inPackage(draft: BundleDraft, from: string, specifier: string): string[] {
  if (isBuiltin(specifier)) {
    if (/^(node:)?module$/.test(specifier))
      throw refused(draft, from, `imports "${specifier}", which can load any file`);
    return [];
  }
  const isOwn = !from.split(sep).includes("node_modules");
  const name = packageNameOf(specifier);
  if (name === undefined) {
    // What a package names so is looked up in its own manifest, or not at all.
    if (!isOwn && !/^(?:\/|file:|data:)/i.test(specifier)) return [];
    throw refused(draft, from, `imports "${specifier}"; only relative paths and packages are taken`);
  }
  const found = name === "glovebox" ? undefined : findPackage(draft, dirname(from), name);
  if (found === undefined) return [];
  addPackage(draft, found);
  const { files, others } = entriesOf(draft, found.folder, specifier.slice(name.length + 1));
  return [...files, ...others.flatMap((other) => inPackage(draft, join(found.folder, "package.json"), other))];
}

function takeFile(draft: BundleDraft, name: string): Uint8Array {
  const bytes = draft.read(name);
  if (bytes === undefined) throw new SandboxError("not_found", `${join(draft.top, name)} cannot be read`);
  draft.add(name, bytes);
  addScope(draft, dirname(name));
  return bytes;
}

/** Whether `.js` is a module is said by the `package.json` above it; nothing else of that matters here. */
function addScope(draft: BundleDraft, folder: string): void {
  for (let at = folder; ; at = dirname(at)) {
    const name = join(at, "package.json");
    if (!draft.files.has(name)) {
      const bytes = draft.read(name);
      if (bytes !== undefined || at === ".") draft.add(name, Buffer.from(JSON.stringify(typeIn(bytes))));
    }
    if (at === ".") return;
  }
}

function typeIn(bytes: Buffer | undefined): { type?: "module" | "commonjs" } {
  try {
    const { type } = JSON.parse(bytes?.toString("utf8") ?? "{}") as { type?: unknown };
    return type === "module" || type === "commonjs" ? { type } : {};
  } catch {
    return {};
  }
}

function hashOf({ files, links }: BundleDraft, entry: string): string {
  const digest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
  const content = [...files].map(([name, bytes]) => [name, digest(bytes)]).sort(byName);
  return digest(Buffer.from(JSON.stringify(["glovebox code blueprint 1", entry, content, [...links].sort(byName)])));
}

function byName([a = ""]: readonly string[], [b = ""]: readonly string[]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function refused({ top }: BundleDraft, name: string, why: string): SandboxError {
  return new SandboxError("permission_denied", `The blueprint's file ${join(top, name)} ${why}`, {
    operation: "blueprint",
    hint: "code from a repository may import only what can be shown and hashed before it runs: write the name as a string",
  });
}
