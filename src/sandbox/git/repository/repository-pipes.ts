import { type Dirent, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { unsafePart } from "./untrusted-file.js";

/** Milliseconds. A git that takes longer may be waiting at a pipe. */
const SLOW = 2_000;
const MOST_ENTRIES = 500_000;

/** Runs git on a source, and ends it when it waits at a pipe among the files of the git directory: `tampered`, with its path. */
export async function withRepositoryPipeWatch<T>(
  gitDir: string,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  let pipe: string | undefined;
  const timer = setTimeout(() => {
    pipe = findPipe(gitDir);
    if (pipe !== undefined) ending.abort();
  }, SLOW);
  try {
    return await run(signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]));
  } catch (error) {
    throw pipe === undefined ? error : unsafePart(pipe, "a plain file");
  } finally {
    clearTimeout(timer);
  }
}

function findPipe(gitDir: string): string | undefined {
  const waiting = ["refs", "worktrees", "logs", "objects"].map((name) => join(gitDir, name));
  for (let seen = 0; waiting.length > 0 && seen < MOST_ENTRIES; ) {
    const directory = waiting.pop() ?? "";
    for (const entry of entriesOf(directory)) {
      seen += 1;
      const path = join(directory, entry.name);
      if (entry.isDirectory()) waiting.push(path);
      else if (!isPlain(entry, path)) return path;
    }
  }
  return undefined;
}

function entriesOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

function isPlain(entry: Dirent, path: string): boolean {
  if (!entry.isSymbolicLink()) return entry.isFile();
  const target = statSync(path, { throwIfNoEntry: false });
  return target === undefined || target.isFile() || target.isDirectory();
}
