import { type Dirent, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { unsafePart } from "./untrusted-file.js";

/** Milliseconds. A git that takes longer may be waiting at a pipe. */
const SLOW = 500;
const MOST_ENTRIES = 500_000;
/** What git opens in a working tree without a look at what it is. */
const OPENED_BY_GIT = /^\.git(ignore|attributes|modules)$/;

/** Where git may meet a pipe. */
interface Places {
  readonly gitDir: string;
  /** A working tree that others may have written. */
  readonly tree?: string | undefined;
}

/** Runs git on a source, and ends it when it waits at a pipe among the files that it opens: `tampered`, with its path. */
export async function withRepositoryPipeWatch<T>(
  places: Places,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  let pipe: string | undefined;
  let hasEnded = false;
  const look = async (): Promise<void> => {
    pipe = await findPipe(places, () => hasEnded);
    if (pipe !== undefined) ending.abort();
  };
  const timer = setTimeout(() => void look(), SLOW);
  try {
    return await run(signal === undefined ? ending.signal : AbortSignal.any([signal, ending.signal]));
  } catch (error) {
    throw pipe === undefined ? error : unsafePart(pipe, "a plain file");
  } finally {
    hasEnded = true;
    clearTimeout(timer);
  }
}

/** A directory to look into: of a git directory, where every entry counts, or of a working tree. */
interface Directory {
  readonly path: string;
  readonly isOfGit: boolean;
}

async function findPipe({ gitDir, tree }: Places, isOver: () => boolean): Promise<string | undefined> {
  const parts = ["refs", "worktrees", "logs", "objects"].map((name) => ({ path: join(gitDir, name), isOfGit: true }));
  const waiting: Directory[] = [...(tree === undefined ? [] : [{ path: tree, isOfGit: false }]), ...parts];
  for (let seen = 0; seen < MOST_ENTRIES && !isOver(); ) {
    const directory = waiting.pop();
    if (directory === undefined) return undefined;
    for (const entry of await entriesOf(directory.path)) {
      seen += 1;
      const path = join(directory.path, entry.name);
      const isOfGit = directory.isOfGit || entry.name === ".git";
      if (entry.isDirectory()) {
        // The repository's own was looked at above.
        if (path !== gitDir) waiting.push({ path, isOfGit });
      } else if ((isOfGit || OPENED_BY_GIT.test(entry.name)) && !isPlain(entry, path)) return path;
    }
  }
  return undefined;
}

async function entriesOf(directory: string): Promise<Dirent[]> {
  return await readdir(directory, { withFileTypes: true }).catch(() => []);
}

function isPlain(entry: Dirent, path: string): boolean {
  if (!entry.isSymbolicLink()) return entry.isFile();
  try {
    const target = statSync(path, { throwIfNoEntry: false });
    return target === undefined || target.isFile() || target.isDirectory();
  } catch {
    return true;
  }
}
