import type { Capabilities, Changes, FileStat } from "../../../../contracts/types.js";
import { errorFor, type GuestChannel, GuestFailure, GuestFiles, startCommand } from "../../guest.js";
import type { Driver, DriverProcess, StartSpec } from "../../types.js";
import type { RemoteSandbox } from "./client.js";
import { diagnose, persist } from "./failure.js";
import { type GuestSession, guestPath, type Place, startGuest } from "./guest-session.js";
import { BACKEND } from "./options.js";
import { isSimple, startSimple } from "./simple-exec.js";
import { fetchFile, type Outcome, packTree, placeFiles, type Stage, unpackTree } from "./staged-files.js";

/** A session whose log is larger than this many bytes is replaced as soon as nothing runs in it. */
const WORN_OUT = 32 << 20;
/** Files up to this size are read over the channel. */
const SMALL_FILE = 256 << 10;
const PREVIEW_SECONDS = 24 * 3600;
const VERB_TIMEOUT = 600_000;

/** The operations of a driver that not every sandbox has. */
export type DaytonaOperations = Pick<Driver, "snapshot" | "restore" | "fork" | "changes" | "git">;

/** What a driver is made of. */
export interface DaytonaParts {
  readonly id: string;
  readonly remote: RemoteSandbox;
  readonly place: Place;
  readonly guest: GuestSession;
  readonly capabilities: Capabilities;
  operations(driver: DaytonaDriver): DaytonaOperations;
  /** Frees what this process holds; a kept machine is stopped. */
  close(driver: DaytonaDriver): Promise<void>;
}

/** The Daytona driver: the guest runs commands and small file operations; large transfers use the service's own API. */
export class DaytonaDriver implements Driver {
  readonly backend: string = BACKEND;
  readonly id: string;
  readonly workDir: string;
  readonly capabilities: Capabilities;
  readonly baseEnv: Readonly<Record<string, string>>;
  readonly place: Place;
  readonly #parts: DaytonaParts;
  #remote: RemoteSandbox;
  #guest: GuestSession;
  #renewal: Promise<void> | undefined;
  onWarning?: (message: string) => void;
  declare readonly snapshot?: () => Promise<string>;
  declare readonly restore?: (id: string) => Promise<void>;
  declare readonly fork?: (count: number) => Promise<Driver[]>;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;

  constructor(parts: DaytonaParts) {
    this.id = parts.id;
    this.place = parts.place;
    this.workDir = parts.place.workDir;
    this.capabilities = parts.capabilities;
    this.#parts = parts;
    this.#remote = parts.remote;
    this.#guest = parts.guest;
    const path = parts.guest.path ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    this.baseEnv = { PATH: path, HOME: parts.place.home, LANG: "C.UTF-8" };
    Object.assign(this, parts.operations(this));
  }

  get remote(): RemoteSandbox {
    return this.#remote;
  }

  /** Continues with another machine, whose guest runs: from now on, the files are those of that machine. */
  async replace(remote: RemoteSandbox, guest: GuestSession): Promise<void> {
    const old = this.#guest;
    this.#remote = remote;
    this.#guest = guest;
    await old.stop();
  }

  async start(spec: StartSpec): Promise<DriverProcess> {
    if (isSimple()) return startSimple(this.#remote, spec);
    const channel = await this.#channel();
    try {
      return await startCommand(channel, spec, this.#relative(spec.cwd));
    } catch (error) {
      throw error instanceof GuestFailure ? errorFor(error.number, spec.cwd) : error;
    }
  }

  async read(path: string): Promise<Uint8Array | null> {
    const small = await (await this.#files()).readUpTo(path, SMALL_FILE);
    return small === undefined ? await fetchFile(this.#stage(), path, this.#relative(path)) : small;
  }

  async write(files: readonly { path: string; content: Uint8Array; mode: number }[]): Promise<void> {
    await placeFiles(
      this.#stage(),
      files.map((file) => ({ ...file, relative: this.#relative(file.path) })),
    );
  }

  async stat(path: string): Promise<FileStat | null> {
    return await (await this.#files()).stat(path);
  }

  async list(path: string): Promise<string[]> {
    return await (await this.#files()).list(path);
  }

  async remove(path: string, opts: { recursive: boolean }): Promise<boolean> {
    return await (await this.#files()).remove(path, opts.recursive);
  }

  async rename(from: string, to: string): Promise<void> {
    await (await this.#files()).rename(from, to);
  }

  async makeDirectory(path: string): Promise<void> {
    await (await this.#files()).makeDirectory(path);
  }

  async importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void> {
    await unpackTree(this.#stage(), tar, path, this.#relative(path));
  }

  exportTree(path: string): AsyncIterable<Uint8Array> {
    return packTree(this.#stage(), path, this.#relative(path));
  }

  async url(port: number): Promise<string> {
    try {
      return (await persist(() => this.#remote.getSignedPreviewUrl(port, PREVIEW_SECONDS))).url;
    } catch (error) {
      throw await diagnose(this.#remote, error, `the address of port ${port}`);
    }
  }

  /** Runs a program to its end for the driver itself, with a short output. */
  async run(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
    const channel = await this.#channel();
    const spec = {
      argv,
      cwd: this.workDir,
      env: { ...this.baseEnv, ...env },
      stdin: "none",
      timeout: VERB_TIMEOUT,
    } as const;
    const process = await startCommand(channel, spec, "");
    const [stdout, stderr, exit] = await Promise.all([
      collect(process.stdout),
      collect(process.stderr),
      process.wait(),
    ]);
    return { exitCode: exit.exitCode, stdout, stderr };
  }

  /** Ends everything that runs; the files stay. */
  async stop(): Promise<void> {
    await this.#guest.stop();
  }

  /** Whether nothing runs in the sandbox. */
  get isIdle(): boolean {
    return this.#guest.channel.isIdle;
  }

  /** Closes the channel to the guest: running calls end, and no other can start. */
  closeChannel(): void {
    this.#guest.channel.close();
  }

  async close(): Promise<void> {
    await this.#parts.close(this);
  }

  #stage(): Stage {
    const { folder, workDir } = this.place;
    const guest = guestPath(this.place, this.#guest.arch);
    return { remote: this.#remote, folder, workDir, run: (args) => this.run([guest, ...args]) };
  }

  async #files(): Promise<GuestFiles> {
    return new GuestFiles(await this.#channel(), (path) => this.#relative(path));
  }

  async #channel(): Promise<GuestChannel> {
    while (this.#renewal !== undefined) await this.#renewal;
    const { channel, link, arch } = this.#guest;
    if (link.received < WORN_OUT || !channel.isIdle) return channel;
    const old = this.#guest;
    this.#renewal = startGuest(this.#remote, this.place, arch)
      .then((guest) => {
        this.#guest = guest;
        return old.stop();
      })
      .finally(() => {
        this.#renewal = undefined;
      });
    await this.#renewal;
    return this.#guest.channel;
  }

  #relative(path: string): string {
    return path === this.workDir ? "" : path.slice(this.workDir.length + 1);
  }
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
