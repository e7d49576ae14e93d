import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { SandboxError } from "../sandbox/errors.js";
import { privateSubdirectory } from "../sandbox/host.js";
import { makeDirectories } from "../util/make-directories.js";
import { nearestName } from "../util/nearest.js";
import { assertRunId } from "./run-id.js";

/** Where everything of one run is. */
export interface RunDirectory {
  readonly runId: string;
  /** Absolute. */
  readonly path: string;
  /** A file or directory in it. */
  at(...parts: string[]): string;
}

/** Makes the directory of a new run, and notes where it is. A run of this id that is there already is `conflict`. */
export async function createRunDirectory(runId: string, folder: string): Promise<RunDirectory> {
  assertRunId(runId);
  const parent = resolve(folder);
  const directory = describe(runId, join(parent, runId));
  const known = await pathOf(runId);
  if (known !== undefined && (await exists(known))) throw taken(runId, known);
  makeDirectories(parent);
  await ignoreFolder(parent);
  try {
    await mkdir(directory.path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw taken(runId, directory.path);
    throw error;
  }
  await mkdir(directory.at("nodes"));
  await mkdir(directory.at("checkpoints"));
  await writeFile(entryOf(runId), `${JSON.stringify({ runId, path: directory.path })}\n`, { mode: 0o600 });
  return directory;
}

/** The directory of a run, wherever it was started; `not_found` names the run that may have been meant. */
export async function findRunDirectory(runId: string): Promise<RunDirectory> {
  assertRunId(runId);
  const path = await pathOf(runId);
  if (path !== undefined && (await exists(path))) return describe(runId, path);
  const here = join(process.cwd(), ".glovebox", "runs", runId);
  if (await exists(join(here, "run.json"))) return describe(runId, here);
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
  const found: RunDirectory[] = [];
  for (const runId of await knownRunIds()) {
    const path = await pathOf(runId);
    if (path !== undefined && (await exists(path))) found.push(describe(runId, path));
  }
  return found;
}

/** Removes a run's directory and forgets it. */
export async function removeRunDirectory({ runId, path }: RunDirectory): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await rm(entryOf(runId), { force: true });
}

/** Forgets the runs whose directory somebody has removed. */
export async function forgetMissingRuns(): Promise<void> {
  for (const runId of await knownRunIds()) {
    const path = await pathOf(runId);
    if (path === undefined || !(await exists(path))) await rm(entryOf(runId), { force: true });
  }
}

function describe(runId: string, path: string): RunDirectory {
  return { runId, path, at: (...parts) => join(path, ...parts) };
}

/** What a run writes down is no part of the repository that it works on. */
async function ignoreFolder(parent: string): Promise<void> {
  await writeFile(join(parent, ".gitignore"), "*\n", { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

async function knownRunIds(): Promise<string[]> {
  const names = await readdir(dirname(entryOf("x")));
  return names.filter((name) => name.endsWith(".json")).map((name) => name.slice(0, -".json".length));
}

async function pathOf(runId: string): Promise<string | undefined> {
  try {
    const { path } = JSON.parse(await readFile(entryOf(runId), "utf8")) as { path?: unknown };
    return typeof path === "string" ? path : undefined;
  } catch {
    // No entry, or one that a crash left unfinished: nothing is known of the run either way.
    return undefined;
  }
}

function entryOf(runId: string): string {
  return join(privateSubdirectory("runs"), `${runId}.json`);
}

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

function taken(runId: string, path: string): SandboxError {
  return new SandboxError("conflict", `There is a run "${runId}" already: ${path}`, {
    retryable: false,
    hint: `glovebox resume ${runId} goes on with it; without --run-id a new name is made`,
  });
}
