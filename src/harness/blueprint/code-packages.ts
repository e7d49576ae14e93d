import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { type BundleDraft, SCANNED, TRIED } from "./bundle-draft.js";

/** A package in a `node_modules` of the repository, by paths from its top. */
export interface FoundPackage {
  /** Where it was looked up. */
  readonly name: string;
  /** Where it really is. */
  readonly folder: string;
}

const NAME = /^(?:@[A-Za-z0-9_~-][\w.~-]*\/)?[A-Za-z0-9_~-][\w.~-]*$/;
const MANIFEST = "package.json";
const LEFT_OUT = new Set(["node_modules", ".git"]);

/** The name of the package that a specifier is about; undefined when it is about none. */
export function packageNameOf(specifier: string): string | undefined {
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  return NAME.test(name) && !specifier.includes("..") ? name : undefined;
}

/** Looks a package up as Node does, from a folder upwards, and no higher than the top of the repository. */
export function findPackage({ top }: BundleDraft, from: string, name: string): FoundPackage | undefined {
  for (let at = from; ; at = dirname(at)) {
    const place = join(at, "node_modules", name);
    if (lstatSync(join(top, place), { throwIfNoEntry: false }) !== undefined) {
      const folder = relative(top, realpathSync(join(top, place)));
      if (folder === "" || folder.startsWith("..")) throw leadsAway(join(top, place));
      return { name: place, folder };
    }
    if (at === ".") return undefined;
  }
}

/** Takes a package with all of its files. */
export function addPackage(draft: BundleDraft, { name, folder }: FoundPackage): void {
  if (name !== folder) draft.links.set(name, relative(dirname(name), folder));
  if (draft.packages.has(folder)) return;
  draft.packages.add(folder);
  addFolder(draft, folder);
}

/**
 * The files of a package that somebody who names it, or `path` in it, may load, and the packages that its own short names
 * stand for. All that its manifest names counts, under whatever condition.
 */
export function entriesOf(draft: BundleDraft, folder: string, path: string): { files: string[]; others: string[] } {
  const { main, module, exports, imports } = manifestIn(draft.files.get(join(folder, MANIFEST)));
  const named = [...textsIn(main), ...textsIn(module), ...textsIn(exports), ...textsIn(imports), "index", path];
  const isBare = (text: string): boolean => packageNameOf(text) !== undefined && textsIn(imports).includes(text);
  const files = named
    .filter((text) => !isBare(text))
    .flatMap((text) => {
      const [start = "", ...rest] = join(folder, text).split("*");
      if (rest.length > 0)
        return [...draft.files.keys()].filter((name) => SCANNED.test(name) && name.startsWith(start));
      return TRIED.map((suffix) => start + suffix).filter((name) => draft.files.has(name));
    });
  return { files: files.filter((name) => !name.endsWith(MANIFEST)), others: textsIn(imports).filter(isBare) };
}

/** Every text in a part of a manifest, however deep. */
function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function manifestIn(
  bytes: Uint8Array | undefined,
): Partial<Record<"main" | "module" | "exports" | "imports", unknown>> {
  try {
    return (JSON.parse(Buffer.from(bytes ?? []).toString("utf8")) as object | null) ?? {};
  } catch {
    return {};
  }
}

function addFolder(draft: BundleDraft, folder: string): void {
  for (const entry of readdirSync(join(draft.top, folder), { withFileTypes: true })) {
    const name = join(folder, entry.name);
    if (entry.isDirectory() && !LEFT_OUT.has(entry.name)) addFolder(draft, name);
    // A link in a package is not followed, so whatever it leads to cannot be loaded.
    const bytes = entry.isFile() ? draft.read(name) : undefined;
    if (bytes !== undefined) draft.add(name, bytes);
  }
}

function leadsAway(path: string): SandboxError {
  return new SandboxError("permission_denied", `The package ${path} is a link that leads out of its repository`, {
    operation: "blueprint",
    hint: "install it in the repository, or put the blueprint into your own folder",
  });
}
