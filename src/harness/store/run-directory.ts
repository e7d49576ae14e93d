import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join, relative, resolve, sep } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { writeFileAtomic } from "../../sandbox/host.js";
import { type OpenDirectory, openBeneath } from "../../util/beneath.js";
import { makeDirectories } from "../../util/make-directories.js";
import { nearestName } from "../../util/nearest.js";
import { assertRunId } from "./run-id.js";
import { type Entry, forgetEntry, knownRunIds, readEntry, saveEntry, stateFolder } from "./run-ledger.js";

/**
 * Where the files of a run are. `path` is usually in the repository, where others may write: it is for people. What
 * Glovebox itself relies on later is in `state`, below the user's own home.
 */
export interface RunDirectory {
  readonly runId: string;
  /** Absolute. */
  readonly path: string;
  /** The path of a file in it, to show or to read. */
  at(...parts: string[]): string;
  /** The path of a private file of the run. */
  state(...parts: string[]): string;
  /** Opens it, or a folder in it, without following links; with `make`, folders that are missing are made. */
  open(folders?: readonly string[], opts?: { make?: number }): OpenDirectory;
}

/**
 * Makes the directory of a new run, and notes where it is. A run of this id that is there already is `conflict`. Below
 * `top`, the top of a repository, no link is followed.
 */
export async function createRunDirectory(runId: string, folder: string, top?: string): Promise<RunDirectory> {
  assertRunId(runId);
  const known = await directoryOf(runId);
  if (known !== undefined) throw taken(runId, known.path);
  const { root, names } = placeOf(resolve(folder), top);
  if (names.length === 0) makeDirectories(root);
  const entry: Entry = { runId, path: join(root, ...names, runId), root };
  using parent = openBeneath(root, names, { make: 0o777 });
  await ignoreFolder(parent);
  try {
    mkdirSync(parent.at(runId), { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw taken(runId, entry.path);
    throw error;
  }
  const directory = describe(entry);
  directory.open(["nodes"], { make: 0o777 }).close();
  await rm(directory.state(), { recursive: true, force: true });
  await mkdir(directory.state("checkpoints"), { recursive: true, mode: 0o700 });
  await saveEntry(entry);
  return directory;
}

/** The directory of a run of this user's, wherever it was started; `not_found` names the run that may have been meant. */
export async function findRunDirectory(runId: string): Promise<RunDirectory> {
  assertRunId(runId);
  const found = await directoryOf(runId);
  if (found !== undefined) return found;
  const nearest = nearestName(runId, await knownRunIds());
  throw new SandboxError("not_found", `There is no run "${runId}"`, {
    hint: nearest === undefined ? "glovebox runs lists them" : `did you mean ${nearest}?`,
  });
}

/** Whether there is a run of this id. */
export async function isRun(runId: string): Promise<boolean> {
  return await findRunDirectory(runId).then(
    () => true,
    () => false,
  );
}

/** Every run whose directory is still there. */
export async function listRunDirectories(): Promise<RunDirectory[]> {
  const all = await Promise.all((await knownRunIds()).map(directoryOf));
  return all.filter((directory) => directory !== undefined);
}

/** Removes a run's directory and forgets it. A link in its place is not ours, and stays. */
export async function removeRunDirectory(directory: RunDirectory): Promise<void> {
  const { runId } = directory;
  const entry = await readEntry(runId);
  if (entry !== undefined && presence(directory) === "there") {
    const { root, names } = reopened(entry);
    using parent = openBeneath(root, names.slice(0, -1));
    await rm(parent.at(runId), { recursive: true, force: true });
  }
  await rm(directory.state(), { recursive: true, force: true });
  await forgetEntry(runId);
}

/** Forgets the runs whose directory somebody has removed. */
export async function forgetMissingRuns(): Promise<void> {
  for (const runId of await knownRunIds()) {
    if ((await directoryOf(runId)) !== undefined) continue;
    await rm(stateFolder(runId), { recursive: true, force: true });
    await forgetEntry(runId);
  }
}

/** Writes a file of a run for people, so that a reader finds the old one or the new one; a link in its place is replaced. */
export function writePublic(directory: RunDirectory, name: string, text: string): void {
  using opened = directory.open();
  replaceFile(opened.at(name), text);
}

/**
 * Replaces a file so that a reader finds the old one or the new one. Synchronous and not forced to disk: at the end of a run, what still goes on in
 * the background must not come in between.
 */
export function replaceFile(path: string, text: string): void {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
  renameSync(temporary, path);
}

/** Writes a file twice: privately, where it is read from again, and into the directory of the run, for people. */
export async function writeBoth(directory: RunDirectory, name: string, text: string): Promise<void> {
  await writeFileAtomic(directory.state(name), text);
  writePublic(directory, name, text);
}

/** The directory of a run that has an entry and is still there. */
async function directoryOf(runId: string): Promise<RunDirectory | undefined> {
  const entry = await readEntry(runId);
  const found = entry && describe(entry);
  return found !== undefined && presence(found) !== "absent" ? found : undefined;
}

function describe(entry: Entry): RunDirectory {
  const { runId, path } = entry;
  const { root, names } = reopened(entry);
  return {
    runId,
    path,
    at: (...parts) => join(path, ...parts),
    state: (...parts) => join(stateFolder(runId), ...parts),
    open: (folders = [], opts = {}) => {
      using _ = opts.make === undefined ? undefined : openBeneath(root, names);
      return openBeneath(root, [...names, ...folders], opts);
    },
  };
}

/** From where on no link is followed, and the names below it. */
function reopened({ root, path }: Entry): { root: string; names: string[] } {
  return { root, names: relative(root, path).split(sep) };
}

function placeOf(folder: string, top: string | undefined): { root: string; names: string[] } {
  if (top === undefined || !folder.startsWith(top.endsWith(sep) ? top : top + sep)) return { root: folder, names: [] };
  return { root: top, names: relative(top, folder).split(sep) };
}

/** Whether a run's directory is there. Where a link has taken the place of a part of its path, it is led away. */
function presence(directory: RunDirectory): "there" | "absent" | "led-away" {
  try {
    directory.open().close();
    return "there";
  } catch (error) {
    return error instanceof SandboxError && error.code === "path_confinement" ? "led-away" : "absent";
  }
}

/** What a run writes down is no part of the repository that it works on. */
async function ignoreFolder(parent: OpenDirectory): Promise<void> {
  await writeFile(parent.at(".gitignore"), "*\n", { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

function taken(runId: string, path: string): SandboxError {
  return new SandboxError("conflict", `There is a run "${runId}" already: ${path}`, {
    retryable: false,
    hint: `glovebox resume ${runId} continues it; without --run-id a new name is made`,
  });
}
