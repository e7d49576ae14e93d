import { posix } from "node:path";
import { findImports, type Import, withoutComments } from "./imports.js";
import {
  adapterOf,
  BACKENDS,
  backendOf,
  ENGINE_REGISTRY,
  isArrowAllowed,
  isEngine,
  LOADERS,
  moduleOf,
  NAMES_BACKENDS,
  PUBLIC_ROOM_FILES,
  REGISTRY,
} from "./layers.js";
import { SHARED_NAMES } from "./shared-names.js";

/** Source files by their path from the root of the repository. */
export type Files = Readonly<Record<string, string>>;

const MAX_LINES = 400;
const MAX_FILES = 25;
/** Folders with one file for each thing of a long list. */
const LISTS = /^(?:src|tests)\/(?:cli\/verbs|testing\/cases)$/;
const VAGUE_NAMES = ["utils", "helpers", "common", "index"];

interface Edge extends Import {
  from: string;
  /** Path of the imported file, when it is one of ours. */
  to: string | undefined;
}

/** Says what is wrong with the shape of the code, one sentence a fault. */
export function findFaults(files: Files): string[] {
  const edges = Object.keys(files).flatMap((file) => edgesOf(file, files));
  return [
    ...Object.keys(files).flatMap((file) => faultsOfFile(file, files[file] ?? "")),
    ...edges.flatMap(faultsOfEdge),
    ...edges.flatMap((edge) => (isRoomClosed(edge, files) ? [`${edge.from} imports the room ${edge.to}`] : [])),
    ...findCycles(edges).map((cycle) => `cycle: ${cycle.join(" -> ")}`),
    ...packagesReachableFrom("src/index.ts", edges).map((chain) => `the root entry reaches ${chain.join(" -> ")}`),
    ...[...findSharedNames(files)]
      .filter(([name]) => !(name in SHARED_NAMES))
      .map(([name, places]) => `several exported types are named ${name}: ${places.join(", ")}`),
  ];
}

/** Says which folders of these files have more than one can look through. */
export function findCrowdedFolders(paths: readonly string[]): string[] {
  const folders = paths.map((path) => posix.dirname(path));
  return [...new Set(folders)].flatMap((folder) => {
    const count = folders.filter((each) => each === folder).length;
    return count > MAX_FILES && !LISTS.test(folder) ? [`${folder} has ${count} files, more than ${MAX_FILES}`] : [];
  });
}

/** The exported types that are declared under one name in several files, with these. A door that exports them again does not count. */
export function findSharedNames(files: Files): Map<string, string[]> {
  const places = new Map<string, string[]>();
  for (const [file, text] of Object.entries(files).filter(([name]) => isSource(name))) {
    const declared = withoutComments(text).matchAll(
      /^export (?:declare )?(?:abstract )?(?:interface|type|class) (\w+)/gm,
    );
    for (const name of new Set([...declared].map((match) => match[1] ?? ""))) {
      places.set(name, [...(places.get(name) ?? []), file]);
    }
  }
  return new Map([...places].filter(([, { length }]) => length > 1));
}

function edgesOf(file: string, files: Files): Edge[] {
  if (!isSource(file)) return [];
  return findImports(files[file] ?? "").map((found) => {
    const { specifier } = found;
    if (!specifier?.startsWith(".")) return { ...found, from: file, to: undefined };
    const path = posix.join(posix.dirname(file), specifier);
    return { ...found, from: file, to: path.replace(/\.js$/, ".ts") };
  });
}

function faultsOfFile(file: string, text: string): string[] {
  const faults: string[] = [];
  const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
  if (lines > MAX_LINES) faults.push(`${file} has ${lines} lines, more than ${MAX_LINES}`);
  if (!isSource(file)) return faults;
  if (moduleOf(file) === undefined) faults.push(`${file} belongs to no layer`);
  faults.push(...namedBackends(file, text).map((name) => `${file} names the backend ${name}`));
  const name = posix.basename(file, ".ts");
  if (VAGUE_NAMES.includes(name) && file !== "src/index.ts") faults.push(`${file} is named after no job`);
  if (/\bexport\s+default\b/.test(withoutComments(text))) faults.push(`${file} has a default export`);
  return faults;
}

/** The backends that a file names in its code though it is neither theirs nor a registry. */
function namedBackends(file: string, text: string): string[] {
  if (!file.startsWith("src/") || file === REGISTRY || file in NAMES_BACKENDS) return [];
  const code = withoutComments(text);
  return BACKENDS.filter((name) => name !== backendOf(file)).filter((name) => {
    const asOption = name === "local" ? "" : `|\\.${name}\\b|\\b${name}\\??:`;
    return new RegExp(`(["'\`])${name}\\1${asOption}`).test(code);
  });
}

function faultsOfEdge({ from, to, kind, specifier }: Edge): string[] {
  if (to === undefined) {
    if (kind === "dynamic" && specifier === undefined && !LOADERS.includes(from))
      return [`${from} imports an expression`];
    return [];
  }
  const faults: string[] = [];
  const [importer, imported] = [moduleOf(from), moduleOf(to)];
  if (importer && imported && !isArrowAllowed(importer, imported)) {
    faults.push(`wrong arrow: ${from} (${importer}) imports ${to} (${imported})`);
  }
  const [own, other] = [backendOf(from), backendOf(to)];
  if (own && other && own !== other) faults.push(`backend ${own} imports backend ${other}: ${from} imports ${to}`);
  const adapter = adapterOf(to);
  if (adapter !== undefined && adapterOf(from) !== adapter) faults.push(`${from} imports the adapter ${adapter}`);
  if (kind === "dynamic" && other && own !== other) {
    const registry = isEngine(to) ? ENGINE_REGISTRY : REGISTRY;
    if (from !== registry) faults.push(`${from} loads backend ${other}; only ${registry} may`);
  }
  return faults;
}

/** `src/x/…` may be imported by `src/x.ts` and from within `src/x/`, where that door exists. */
function isRoomClosed({ from, to, kind }: Edge, files: Files): boolean {
  if (to === undefined || PUBLIC_ROOM_FILES.includes(to) || (kind === "dynamic" && isEngine(to))) return false;
  for (let room = posix.dirname(to); room.startsWith("src/"); room = posix.dirname(room)) {
    const door = `${room}.ts`;
    if (door in files && from !== door && !from.startsWith(`${room}/`)) return true;
  }
  return false;
}

/** Cycles of what is imported at load time or for its types; `import()` is how the registry cuts one on purpose. */
function findCycles(edges: readonly Edge[]): string[][] {
  const next = new Map<string, Set<string>>();
  for (const { from, to, kind } of edges) {
    if (to !== undefined && kind !== "dynamic") next.set(from, (next.get(from) ?? new Set()).add(to));
  }
  const cycles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file]);
    if (path.includes(file) || done.has(file)) return;
    for (const target of next.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of next.keys()) visit(file, []);
  return cycles;
}

/** Chains of imports, all there at load time, from a file to something that is neither ours nor Node's. */
function packagesReachableFrom(entry: string, edges: readonly Edge[]): string[][] {
  const chains: string[][] = [];
  const seen = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const { to, specifier, kind } of edges.filter((edge) => edge.from === file)) {
      if (kind !== "static") continue;
      if (to !== undefined) visit(to, [...path, file]);
      else if (specifier !== undefined && !specifier.startsWith("node:")) chains.push([...path, file, specifier]);
    }
  };
  visit(entry, []);
  return chains;
}

function isSource(file: string): boolean {
  return file.endsWith(".ts");
}
