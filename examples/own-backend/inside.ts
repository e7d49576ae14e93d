import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink } from "node:fs/promises";
import { posix } from "node:path";
import { SandboxError } from "glovebox";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;
/** Names on one way, and looks at a name that is swapped all the time. */
const MAX_TURNS = 4_000;
/** Links on one way, as many as the kernel follows. */
const MAX_LINKS = 40;

/** A name in a directory that is held open, so that nobody can put another directory in its place. */
export interface Place extends AsyncDisposable {
  /** Reaches the name through the open directory: safe until the place is disposed of. */
  readonly path: string;
  /** What is there, itself and not what it points at. */
  readonly stats: Stats | undefined;
}

/** How a path is walked. */
interface Walk {
  /** Whether a link in the last place is followed. */
  follow: boolean;
  /** Whether missing directories on the way are made. */
  make?: boolean;
}

// #region walk
/** Walks from `root` to `path` one name at a time; every link is read here, and none leads out. Null: it ends early. */
export async function walk(root: string, path: string, { follow, make = false }: Walk): Promise<Place | null> {
  let names = namesBelow(root, path);
  let directory = await open(root, O_RDONLY | O_DIRECTORY);
  try {
    for (let turns = 0, links = 0; turns < MAX_TURNS && links <= MAX_LINKS; turns++) {
      const [name = ".", ...rest] = names;
      const here = `/proc/self/fd/${directory.fd}/${name}`;
      const stats = await lstat(here).catch(ignore("ENOENT"));
      if (stats?.isSymbolicLink() && (follow || rest.length > 0)) {
        // A command may have put something else there meanwhile: look again.
        const target = await readlink(here).catch(ignore("EINVAL", "ENOENT"));
        if (target === undefined) continue;
        links++;
        const from = await readlink(`/proc/self/fd/${directory.fd}`);
        names = [...namesBelow(root, posix.resolve(from, target), path), ...rest];
        await directory.close();
        directory = await open(root, O_RDONLY | O_DIRECTORY);
      } else if (rest.length === 0) {
        const held = directory;
        return { path: here, stats, [Symbol.asyncDispose]: () => held.close() };
      } else {
        if (stats === undefined && make) await mkdir(here).catch(ignore("EEXIST"));
        else if (!stats?.isDirectory()) return await giveUp(directory);
        const next = await open(here, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(ignore("ELOOP", "ENOTDIR", "ENOENT"));
        if (next === undefined) continue;
        await directory.close();
        directory = next;
        names = rest;
      }
    }
    throw new SandboxError("invalid_path", `There are too many links on the way to ${path}`);
  } catch (error) {
    await directory.close();
    throw error;
  }
}
// #endregion walk

function namesBelow(root: string, path: string, asked = path): string[] {
  if (path === root) return [];
  if (path.startsWith(`${root}/`)) return path.slice(root.length + 1).split("/");
  throw new SandboxError("path_confinement", `path confinement violation: ${asked} is outside base directory`);
}

async function giveUp(directory: FileHandle): Promise<null> {
  await directory.close();
  return null;
}

function ignore(...codes: string[]): (error: NodeJS.ErrnoException) => undefined {
  return (error) => {
    if (!codes.includes(error.code ?? "")) throw error;
  };
}
