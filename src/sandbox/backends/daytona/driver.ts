import type { Capabilities, Changes } from "../../../../contracts/types.js";
import {
  cwdFor,
  errorFor,
  type GuestChannel,
  GuestFailure,
  GuestFileCalls,
  GuestFiles,
  pathBeneath,
  startCommand,
  waitForPortInside,
} from "../../guest.js";
import type { Driver, DriverCallOptions, DriverFile, DriverFileStream, DriverProcess, StartSpec } from "../../types.js";
import type { RemoteSandbox } from "./client.js";
import { diagnose, persist } from "./failure.js";
import { type GuestSession, guestPath, type Place, startGuest } from "./guest-session.js";
import { BACKEND } from "./options.js";
import { isSimple, startSimple } from "./simple-exec.js";
import {
  fetchFile,
  fetchStream,
  type Outcome,
  packTree,
  placeFiles,
  putFile,
  type Stage,
  unpackTree,
} from "./staged-files.js";

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
export class DaytonaDriver extends GuestFileCalls implements Driver {
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
    super();
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
      return await startCommand(channel, spec, cwdFor(this.workDir, spec));
    } catch (error) {
      throw error instanceof GuestFailure ? errorFor(error.number, spec.cwd) : error;
    }
  }

  override async read(path: string, { signal }: DriverCallOptions = {}): Promise<Uint8Array | null> {
    const small = await this.useFiles(false, (files) => files.readUpTo(path, SMALL_FILE, signal));
    return small === undefined ? await fetchFile(this.#stage(signal), path, this.#relative(path)) : small;
  }

  override async readStream(
    path: string,
    opts: DriverCallOptions & { start: number; length?: number },
  ): Promise<AsyncIterable<Uint8Array> | null> {
    const { start, length = Number.MAX_SAFE_INTEGER, signal } = opts;
    const found = await this.statTarget(path, opts);
    const wanted = Math.min(length, (found?.size ?? 0) - start);
    if (found?.type !== "file" || wanted <= SMALL_FILE) return await super.readStream(path, opts);
    return await fetchStream(this.#stage(signal), path, [this.#relative(path), String(start), String(length)]);
  }

  override async write(uploads: readonly DriverFile[], { signal }: DriverCallOptions = {}): Promise<void> {
    await placeFiles(
      this.#stage(signal),
      uploads.map((file) => ({ ...file, relative: this.#relative(file.path) })),
    );
  }

  override async writeStream(file: DriverFileStream, { signal }: DriverCallOptions = {}): Promise<void> {
    await putFile(this.#stage(signal), { ...file, relative: this.#relative(file.path) });
  }

  override async importTree(
    tar: AsyncIterable<Uint8Array>,
    path: string,
    { signal }: DriverCallOptions = {},
  ): Promise<void> {
    await unpackTree(this.#stage(signal), tar, path, this.#relative(path));
  }

  override exportTree(path: string): AsyncIterable<Uint8Array> {
    return packTree(this.#stage(), path, this.#relative(path));
  }

  protected override async useFiles<T>(_isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T> {
    return await work(await this.#files());
  }

  protected override async *streamFiles(
    work: (files: GuestFiles) => AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array> {
    yield* work(await this.#files());
  }

  async url(port: number): Promise<string> {
    try {
      return (await persist(() => this.#remote.getSignedPreviewUrl(port, PREVIEW_SECONDS))).url;
    } catch (error) {
      throw await diagnose(this.#remote, error, `the address of port ${port}`);
    }
  }

  async waitForPort(port: number, timeout: number, signal: AbortSignal): Promise<boolean> {
    return await waitForPortInside(await this.#channel(), port, timeout, signal);
  }

  /** Runs a program to its end for the driver itself, with a short output. */
  async run(
    argv: readonly string[],
    env: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<Outcome> {
    const channel = await this.#channel();
    const spec = {
      argv,
      cwd: this.workDir,
      env: { ...this.baseEnv, ...env },
      stdin: "none",
      timeout: VERB_TIMEOUT,
    } as const;
    signal?.throwIfAborted();
    const process = await startCommand(channel, spec, "");
    const stop = (): void => {
      process.kill("SIGKILL").catch(() => undefined);
    };
    signal?.addEventListener("abort", stop, { once: true });
    const [stdout, stderr, exit] = await Promise.all([
      collect(process.stdout),
      collect(process.stderr),
      process.wait(),
    ]).finally(() => signal?.removeEventListener("abort", stop));
    signal?.throwIfAborted();
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

  #stage(signal?: AbortSignal): Stage {
    const { folder, workDir } = this.place;
    const guest = guestPath(this.place, this.#guest.arch);
    const run: Stage["run"] = (args) => this.run([guest, ...args], {}, signal);
    return { remote: this.#remote, folder, workDir, run, ...(signal && { signal }) };
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
    return pathBeneath(this.workDir, path);
  }
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
