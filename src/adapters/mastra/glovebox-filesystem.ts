import { randomBytes } from "node:crypto";
import { posix } from "node:path";
import type {
  CopyOptions,
  FileContent,
  FileEntry,
  FileStat,
  FilesystemInfo,
  ListOptions,
  MastraFilesystem,
  MastraFilesystemOptions,
  ProviderStatus,
  ReadOptions,
  RemoveOptions,
  WriteOptions,
} from "@mastra/core/workspace";
import type { Sandbox } from "../../../contracts/sandbox.js";
import type { FileStat as SandboxFileStat } from "../../../contracts/types.js";
import { withMastraErrors } from "./filesystem-error.js";
import type { GloveboxSandbox } from "./glovebox-sandbox.js";
import { listEntries } from "./list-entries.js";
import { mastra } from "./load-mastra.js";
import { toSandboxPath } from "./virtual-path.js";

/** How to see the files of a sandbox as Mastra's file system. */
export interface GloveboxFilesystemOptions extends MastraFilesystemOptions {
  /** The sandbox whose files these are. It is started at the first use, and not destroyed with the file system. */
  sandbox: GloveboxSandbox;
  /** Default: a random one. */
  id?: string;
  /** The directory that is `/` here, as commands see it. Default: the work directory of the sandbox. */
  basePath?: string;
  /** Refuse every change with `PermissionError`. Default false. */
  readOnly?: boolean;
}

const Base: typeof MastraFilesystem = mastra.MastraFilesystem;

/** The files of a `GloveboxSandbox` for Mastra's workspaces. */
export class GloveboxFilesystem extends Base {
  readonly id: string;
  readonly name = "GloveboxFilesystem";
  readonly provider = "glovebox";
  readonly readOnly: boolean;
  status: ProviderStatus = "pending";
  readonly #owner: GloveboxSandbox;
  readonly #basePath: string | undefined;

  constructor(options: GloveboxFilesystemOptions) {
    const { sandbox, id, basePath, readOnly = false, ...hooks } = options;
    super({ ...hooks, name: "GloveboxFilesystem" });
    this.id = id ?? `glovebox-fs-${randomBytes(4).toString("hex")}`;
    this.readOnly = readOnly;
    this.#owner = sandbox;
    this.#basePath = basePath;
  }

  /** The directory that is `/` here. */
  get basePath(): string {
    return this.#basePath ?? this.#owner.sandbox?.workDir ?? "/workspace";
  }

  override async init(): Promise<void> {
    await this.#owner.ensureRunning();
  }

  getInfo(): FilesystemInfo {
    const { id, name, provider, status, readOnly, error } = this;
    const metadata = { basePath: this.basePath, sandboxId: this.#owner.id };
    return { id, name, provider, status, readOnly, ...(error !== undefined && { error }), metadata };
  }

  getInstructions(): string {
    return `Files of an isolated sandbox. "/" is ${this.basePath}, where commands run.${this.readOnly ? " Read-only." : ""}`;
  }

  /** The path as commands in the sandbox see it. */
  resolveAbsolutePath(path: string): string {
    return toSandboxPath(this.basePath, path);
  }

  async readFile(path: string, options: ReadOptions = {}): Promise<string | Buffer> {
    return await this.#call(path, "read", async (sandbox, inside) => {
      const bytes = await sandbox.readBytes(inside);
      if (bytes === null) throw new mastra.FileNotFoundError(path);
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return options.encoding === undefined ? buffer : buffer.toString(options.encoding);
    });
  }

  async writeFile(path: string, content: FileContent, options: WriteOptions = {}): Promise<void> {
    await this.#change(path, "write", async (sandbox, inside) => {
      const { overwrite = true, recursive = true, expectedMtime } = options;
      if (!recursive) await assertDirectory(sandbox, path, inside);
      if (!overwrite || expectedMtime !== undefined) {
        const found = await sandbox.stat(inside, { follow: true });
        if (found !== null && !overwrite) throw new mastra.FileExistsError(path);
        if (found !== null && expectedMtime !== undefined) assertUnchanged(path, expectedMtime, found);
      }
      await sandbox.writeFile(inside, content);
    });
  }

  async appendFile(path: string, content: FileContent): Promise<void> {
    await this.#change(path, "append", async (sandbox, inside) => await sandbox.appendFile(inside, content));
  }

  async deleteFile(path: string, { force = false }: RemoveOptions = {}): Promise<void> {
    await this.#change(path, "delete", async (sandbox, inside) => {
      if (!(await sandbox.deleteFile(inside)) && !force) throw new mastra.FileNotFoundError(path);
    });
  }

  async copyFile(src: string, dest: string, options: CopyOptions = {}): Promise<void> {
    await this.#change(src, "copy", async (sandbox, from) => {
      const source = await sandbox.stat(from, { follow: true });
      if (source === null) throw new mastra.FileNotFoundError(src);
      const target = await sandbox.stat(this.resolveAbsolutePath(dest), { follow: true });
      if (source.type !== "directory") {
        if (target !== null && options.overwrite === false) throw new mastra.FileExistsError(dest);
        return await sandbox.copy(from, this.resolveAbsolutePath(dest));
      }
      if (options.recursive !== true) throw new mastra.IsDirectoryError(src);
      if (target === null) return await sandbox.copy(from, this.resolveAbsolutePath(dest), { recursive: true });
      for (const name of await sandbox.listDirectory(from)) {
        await this.#merge(`${src}/${name}`, `${dest}/${name}`, options);
      }
    });
  }

  async moveFile(src: string, dest: string, options: CopyOptions = {}): Promise<void> {
    await this.#change(src, "move", async (sandbox, from) => {
      const to = this.resolveAbsolutePath(dest);
      if (options.overwrite === false && (await sandbox.exists(to))) throw new mastra.FileExistsError(dest);
      await sandbox.rename(from, to);
    });
  }

  async mkdir(path: string, { recursive = true }: { recursive?: boolean } = {}): Promise<void> {
    await this.#change(path, "mkdir", async (sandbox, inside) => {
      const found = await sandbox.stat(inside, { follow: true });
      if (found !== null && found.type !== "directory") throw new mastra.FileExistsError(path);
      if (!recursive) await assertDirectory(sandbox, path, inside);
      await sandbox.makeDirectory(inside);
    });
  }

  async rmdir(path: string, { recursive = false, force = false }: RemoveOptions = {}): Promise<void> {
    await this.#change(path, "rmdir", async (sandbox, inside) => {
      const found = await sandbox.stat(inside, { follow: true });
      if (found === null && force) return;
      if (found === null) throw new mastra.DirectoryNotFoundError(path);
      if (found.type !== "directory") throw new mastra.NotDirectoryError(path);
      if (!recursive && (await sandbox.listDirectory(inside)).length > 0) throw new mastra.DirectoryNotEmptyError(path);
      await sandbox.remove(inside, { recursive });
    });
  }

  async readdir(path: string, options: ListOptions = {}): Promise<FileEntry[]> {
    return await this.#call(path, "list", async (sandbox, inside) => {
      const found = await sandbox.stat(inside, { follow: true });
      if (found === null) throw new mastra.DirectoryNotFoundError(path);
      if (found.type !== "directory") throw new mastra.NotDirectoryError(path);
      return await listEntries(sandbox, inside, options);
    });
  }

  async exists(path: string): Promise<boolean> {
    return await this.#call(path, "access", async (sandbox, inside) => await sandbox.exists(inside));
  }

  async stat(path: string): Promise<FileStat> {
    return await this.#call(path, "stat", async (sandbox, inside) => {
      const found = await sandbox.stat(inside, { follow: true });
      if (found === null) throw new mastra.FileNotFoundError(path);
      // Linux tells no time of creation that every file system has; Mastra wants one.
      const modifiedAt = new Date(found.mtimeMs);
      return {
        name: posix.basename(inside),
        path: posix.relative(this.basePath, inside),
        type: found.type === "directory" ? "directory" : "file",
        size: found.size,
        createdAt: modifiedAt,
        modifiedAt,
      };
    });
  }

  async #merge(src: string, dest: string, options: CopyOptions): Promise<void> {
    await this.copyFile(src, dest, options).catch((error: unknown) => {
      if (!(options.overwrite === false && error instanceof mastra.FileExistsError)) throw error;
    });
  }

  async #change<T>(path: string, operation: string, work: FileWork<T>): Promise<T> {
    if (this.readOnly) throw new mastra.PermissionError(path, operation);
    return await this.#call(path, operation, work);
  }

  async #call<T>(path: string, operation: string, work: FileWork<T>): Promise<T> {
    await this.ensureReady();
    await this.#owner.ensureRunning();
    const run = async (sandbox: Sandbox): Promise<T> => await work(sandbox, this.resolveAbsolutePath(path));
    return await withMastraErrors(path, operation, async () => await this.#owner.whileAlive(run));
  }
}

type FileWork<T> = (sandbox: Sandbox, inside: string) => Promise<T>;

/** The directory that a new file or directory goes to must be there. */
async function assertDirectory(sandbox: Sandbox, path: string, inside: string): Promise<void> {
  const parent = await sandbox.stat(posix.dirname(inside), { follow: true });
  if (parent === null) throw new mastra.DirectoryNotFoundError(posix.dirname(path));
  if (parent.type !== "directory") throw new mastra.NotDirectoryError(posix.dirname(path));
}

function assertUnchanged(path: string, expected: Date, { mtimeMs }: SandboxFileStat): void {
  const actual = new Date(mtimeMs);
  if (actual.getTime() !== expected.getTime()) throw new mastra.StaleFileError(path, expected, actual);
}
