import { readdir, readFile, rm } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { privateSubdirectory, writeFileAtomic } from "../../sandbox/host.js";

/** What this user's home knows about a run: only runs that have an entry are this user's. */
export interface Entry {
  readonly runId: string;
  /** Where its directory is. */
  readonly path: string;
  /** Below it, no link leads to `path`. */
  readonly root: string;
}

const SUFFIX = ".json";

/** Enters a run. */
export async function saveEntry(entry: Entry): Promise<void> {
  await writeFileAtomic(entryOf(entry.runId), `${JSON.stringify(entry)}\n`);
}

/** The entry of a run; undefined when it has none. */
export async function readEntry(runId: string): Promise<Entry | undefined> {
  try {
    const { path, root } = JSON.parse(await readFile(entryOf(runId), "utf8")) as Partial<Entry>;
    if (typeof path !== "string" || !isAbsolute(path) || basename(path) !== runId) return undefined;
    return { runId, path, root: root ?? dirname(path) };
  } catch {
    // No entry, or one that a crash left unfinished: nothing is known of the run either way.
    return undefined;
  }
}

/** Removes the entry of a run. */
export async function forgetEntry(runId: string): Promise<void> {
  await rm(entryOf(runId), { force: true });
}

/** The ids of all runs that have an entry. */
export async function knownRunIds(): Promise<string[]> {
  const names = await readdir(privateSubdirectory("runs"));
  return names.filter((name) => name.endsWith(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length));
}

/** Where the private files of a run are. */
export function stateFolder(runId: string): string {
  return join(privateSubdirectory("runs"), runId);
}

function entryOf(runId: string): string {
  return join(privateSubdirectory("runs"), `${runId}${SUFFIX}`);
}
