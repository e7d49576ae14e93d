import { type Dirent, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Looks again and again, as `lookForToken` does, at what is started from now on. */
export function watchForToken(
  token: string,
  directories: readonly string[],
): { stop(): { seen: string[]; looks: number } } {
  const seen = new Set<string>();
  const innocent = processesNow();
  let looks = 0;
  const look = (): void => {
    looks += 1;
    for (const place of lookForToken(token, directories, innocent)) seen.add(place);
  };
  const timer = setInterval(look, 5);
  return {
    stop() {
      clearInterval(timer);
      look();
      return { seen: [...seen], looks };
    },
  };
}

/** The processes that there are now. */
export function processesNow(): Set<string> {
  return new Set(readdirSync("/proc").filter((name) => /^\d+$/.test(name)));
}

/**
 * Where a token is, in some form, in what any other process shows of itself and in the files below the given directories.
 * `innocent` are processes that were there before anybody knew it.
 */
export function lookForToken(
  token: string,
  directories: readonly string[],
  innocent: ReadonlySet<string> = new Set(),
): string[] {
  const pids = [...processesNow()].filter((pid) => Number(pid) !== process.pid && !innocent.has(pid));
  const shown = pids.flatMap((pid) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]);
  return [...shown, ...directories.flatMap(filesBelow)].filter((path) => holdsToken(readQuietly(path), token));
}

/** What is there at this moment; a directory may go while it is listed. */
export function filesBelow(root: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(root, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    const path = join(root, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** The content of a file, one character a byte; nothing when it cannot be read. */
export function readQuietly(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function holdsToken(text: string, token: string): boolean {
  return [token, ...[`x-access-token:${token}`, token].map((form) => Buffer.from(form).toString("base64"))].some(
    (form) => text.includes(form),
  );
}
