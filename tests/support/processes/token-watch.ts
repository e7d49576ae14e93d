import { closeSync, type Dirent, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";

/** Looks again and again, as `lookForToken` does. */
export function watchForToken(
  token: string,
  directories: readonly string[],
): { stop(): { seen: string[]; looks: number } } {
  const seen = new Set<string>();
  let looks = 0;
  const look = (): void => {
    looks += 1;
    for (const place of lookForToken(token, directories)) seen.add(place);
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
  const plain = [`x-access-token:${token}`, token];
  const forms = [token, ...plain.map((form) => Buffer.from(form).toString("base64"))];
  return [...shown, ...directories.flatMap(filesBelow)].filter((path) => {
    const text = readQuietly(path);
    return forms.some((form) => text.includes(form));
  });
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

/** Of a file of the system's the size is not known: Node would take as much anew for each. */
const room = Buffer.alloc(1 << 16);

/** The content of a file, one character a byte; nothing when it cannot be read. */
export function readQuietly(path: string): string {
  let file: number | undefined;
  try {
    file = openSync(path, "r");
    for (let size = 0; size < room.length; ) {
      const more = readSync(file, room, size, room.length - size, null);
      if (more === 0) return room.toString("latin1", 0, size);
      size += more;
    }
    return readFileSync(path, "latin1");
  } catch {
    return "";
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
