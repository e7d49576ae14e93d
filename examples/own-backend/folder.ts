import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { constants } from "node:fs";
import { chmod, mkdir, open as openFile, readdir, realpath, rename, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  assertCapabilities,
  type Capabilities,
  createSandbox,
  type Driver,
  type DriverProcess,
  type FileStat,
  type Sandbox,
  SandboxError,
  type SandboxOptions,
  type StartSpec,
} from "glovebox";
import { startGroup } from "./group.js";
import { type Place, walk } from "./inside.js";

const BACKEND = "folder";
/** Where the folders are. */
export const PLACE: string = join(tmpdir(), `glovebox-folders-${process.getuid?.() ?? "all"}`);

// #region capabilities
/** What this backend really keeps. Whatever is not in here is refused. */
const CAPABILITIES: Capabilities = {
  isolation: "none",
  killTree: "best-effort",
  network: ["full"],
  limits: [],
  snapshot: "none",
  fork: "none",
  pty: false,
  user: false,
  ports: false,
  git: false,
};
// #endregion capabilities

// #region open
const UNKNOWN_HERE = ["repo", "branch", "baseDir", "workspace", "image", "mounts"] as const;

/** What the registry calls: checks what can be kept, makes or finds the folder, wraps the driver. */
export async function open(opts: SandboxOptions): Promise<Sandbox> {
  assertCapabilities({ isolation: "required", ...opts }, CAPABILITIES, BACKEND);
  for (const name of UNKNOWN_HERE) {
    if (opts[name] !== undefined) throw new SandboxError("unsupported", `The ${BACKEND} backend has no ${name}`);
  }
  const id = opts.id ?? `folder-${randomUUID()}`;
  const folder = join(PLACE, id);
  if (opts.id === undefined) await mkdir(join(folder, "work"), { recursive: true });
  else {
    await rename(join(folder, "kept"), join(folder, "used")).catch((cause: unknown) => {
      throw new SandboxError("not_found", `There is no kept sandbox "${id}"`, { cause });
    });
  }
  await mkdir(join(folder, "home"), { recursive: true });
  const keep = opts.keep ?? opts.id !== undefined;
  return createSandbox(new FolderDriver(id, await realpath(folder), keep), opts);
}
// #endregion open

class FolderDriver implements Driver {
  readonly backend = BACKEND;
  readonly capabilities: Capabilities = CAPABILITIES;
  readonly id: string;
  readonly workDir: string;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly #folder: string;
  readonly #keep: boolean;

  constructor(id: string, folder: string, keep: boolean) {
    this.id = id;
    this.workDir = join(folder, "work");
    this.#folder = folder;
    this.#keep = keep;
    this.baseEnv = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", HOME: join(folder, "home"), LANG: "C.UTF-8" };
  }

  // #region start
  async start(spec: StartSpec): Promise<DriverProcess> {
    await using place = await this.#directory(spec.cwd, "not_found");
    // The child goes into the open directory by itself, before it becomes the program.
    return await startGroup(spec, place.path);
  }
  // #endregion start

  // #region files
  async read(path: string): Promise<Uint8Array | null> {
    await using place = await walk(this.workDir, path, { follow: true });
    if (!place?.stats) return null;
    if (!place.stats.isFile()) throw new SandboxError("not_regular_file", `${path} is no regular file`);
    const { O_NOFOLLOW, O_NONBLOCK } = constants;
    await using file = await openFile(place.path, O_NOFOLLOW | O_NONBLOCK).catch(swapped(path));
    if (!(await file.stat()).isFile()) throw new SandboxError("not_regular_file", `${path} is no regular file`);
    return await file.readFile();
  }

  async write(files: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void> {
    for (const { path, content, mode } of files) {
      await using place = await this.#existing(path, { follow: true, make: true });
      if (place.stats?.isDirectory()) throw new SandboxError("not_regular_file", `${path} is a directory`);
      // Whole or not at all: a new file beside it takes its place.
      const temporary = join(dirname(place.path), `.${randomUUID()}`);
      await writeFile(temporary, content, { flag: "wx" });
      await chmod(temporary, mode);
      await rename(temporary, place.path);
    }
  }
  // #endregion files

  async stat(path: string): Promise<FileStat | null> {
    await using place = await walk(this.workDir, path, { follow: false });
    if (!place?.stats) return null;
    const { stats } = place;
    const kinds = { file: stats.isFile(), directory: stats.isDirectory(), symlink: stats.isSymbolicLink() };
    const type = (Object.keys(kinds) as (keyof typeof kinds)[]).find((kind) => kinds[kind]) ?? "other";
    return { type, size: stats.size, mode: stats.mode & 0o777, mtimeMs: stats.mtimeMs };
  }

  async list(path: string): Promise<string[]> {
    await using place = await this.#directory(path, "invalid_path");
    return await readdir(`${place.path}/`);
  }

  async remove(path: string, { recursive }: { recursive: boolean }): Promise<boolean> {
    await using place = await walk(this.workDir, path, { follow: false });
    if (!place?.stats) return false;
    if (!place.stats.isDirectory()) await unlink(place.path);
    else if (recursive) await rm(place.path, { recursive: true });
    else throw new SandboxError("not_regular_file", `${path} is a directory`);
    return true;
  }

  async rename(from: string, to: string): Promise<void> {
    await using source = await this.#existing(from, { follow: false });
    await using target = await this.#existing(to, { follow: false, make: true });
    await rename(source.path, target.path);
  }

  async makeDirectory(path: string): Promise<void> {
    await using place = await this.#existing(path, { follow: true, make: true });
    if (place.stats?.isDirectory()) return;
    if (place.stats) throw new SandboxError("conflict", `There is a file at ${path}`, { retryable: false });
    await mkdir(place.path);
  }

  // #region trees
  async importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void> {
    await this.makeDirectory(path);
    await using place = await this.#directory(path, "invalid_path");
    const child = spawn("tar", ["-xpf", "-"], { cwd: place.path, stdio: ["pipe", "ignore", "ignore"] });
    const closed = once(child, "close") as Promise<[number]>;
    child.stdin.on("error", () => undefined);
    for await (const chunk of tar) await new Promise<void>((resolve) => child.stdin.write(chunk, () => resolve()));
    child.stdin.end();
    const [code] = await closed;
    if (code !== 0) throw new SandboxError("conflict", `tar could not unpack everything into ${path}`);
  }

  async *exportTree(path: string): AsyncGenerator<Uint8Array> {
    await using place = await this.#directory(path, "not_found");
    const child = spawn("tar", ["-cf", "-", "."], { cwd: place.path, stdio: ["ignore", "pipe", "ignore"] });
    yield* child.stdout as AsyncIterable<Uint8Array>;
  }
  // #endregion trees

  async destroy(): Promise<void> {
    if (this.#keep) return await writeFile(join(this.#folder, "kept"), "");
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** A place whose directory is there. */
  async #existing(path: string, how: Parameters<typeof walk>[2]): Promise<Place> {
    const place = await walk(this.workDir, path, how).catch(tooLong(path));
    if (place) return place;
    if (how.make) throw new SandboxError("conflict", `There is a file on the way to ${path}`, { retryable: false });
    throw new SandboxError("not_found", `There is no ${path}`);
  }

  async #directory(path: string, otherwise: "not_found" | "invalid_path"): Promise<Place> {
    const place = await walk(this.workDir, path, { follow: true });
    if (place?.stats?.isDirectory()) return place;
    await place?.[Symbol.asyncDispose]();
    const code = place?.stats ? otherwise : "not_found";
    throw new SandboxError(code, `There is no directory ${path}`);
  }
}

/** Between the look and the opening a command put a link there. */
function swapped(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== "ELOOP") throw error;
    throw new SandboxError("path_confinement", `path confinement violation: ${path} is outside base directory`);
  };
}

function tooLong(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    if (error.code !== "ENAMETOOLONG") throw error;
    throw new SandboxError("invalid_path", `A name in ${path} is too long`);
  };
}
