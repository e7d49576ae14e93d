import type { DirectoryEntry, FileStat } from "../../../contracts/types.js";
import {
  type DriverCallOptions,
  type DriverFile,
  type DriverFileStream,
  type FileCalls,
  NEW_FILE_MODE,
} from "../types.js";
import type { GuestFiles } from "./guest-files.js";

const AT_ONCE = 64;
const SMALL = 64 << 10;

/** A file as a stream; null if there is none. */
export type FileStream = AsyncIterable<Uint8Array> | null;

/** The file calls of every sandbox that is served by the guest, written once. A backend only says how a call gets to its guest. */
export abstract class GuestFileCalls implements FileCalls {
  /** Runs one call when the backend lets it. `isChange`: it changes files. */
  protected abstract useFiles<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T>;
  /** As `useFiles`, for a call that only reads and whose result is a stream. */
  protected abstract streamFiles(work: (files: GuestFiles) => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;

  #anywhere: GuestFileCalls | undefined;

  /** As `useFiles`, for a file that is read while the caller uses the result. */
  protected useStream(work: (files: GuestFiles) => Promise<FileStream>): Promise<FileStream> {
    return this.useFiles(false, work);
  }

  /** The calls for any path of the sandbox. All of them go through the guest, whatever the backend has for its own files. */
  get anywhere(): FileCalls {
    this.#anywhere ??= new AnywhereCalls({
      use: (isChange, work) => this.useFiles(isChange, (files) => work(files.anywhere())),
      stream: (work) => this.streamFiles((files) => work(files.anywhere())),
      useStream: (work) => this.useStream((files) => work(files.anywhere())),
    });
    return this.#anywhere;
  }

  read(path: string, { signal }: DriverCallOptions = {}): Promise<Uint8Array | null> {
    return this.#use(false, signal, (files) => files.read(path, signal));
  }

  readStream(path: string, opts: DriverCallOptions & { start: number; length?: number }): Promise<FileStream> {
    return this.useStream((files) => {
      opts.signal?.throwIfAborted();
      return files.readStream(path, opts);
    });
  }

  write(uploads: readonly DriverFile[], { signal }: DriverCallOptions = {}): Promise<void> {
    return this.#use(true, signal, async (files) => {
      for (let at = 0; at < uploads.length; ) {
        signal?.throwIfAborted();
        // Small files are sent without waiting for each other; the guest still writes them in this order.
        const large = uploads.slice(at, at + AT_ONCE).findIndex(({ content }) => content.length > SMALL);
        const batch = uploads.slice(at, at + (large === -1 ? AT_ONCE : Math.max(1, large)));
        await Promise.all(batch.map(({ path, content, mode }) => files.write(path, content, mode, signal)));
        at += batch.length;
      }
    });
  }

  writeStream({ path, source, mode }: DriverFileStream, { signal }: DriverCallOptions = {}): Promise<void> {
    return this.#use(true, signal, (files) => files.writeStream(path, source, mode, signal));
  }

  append({ path, content, mode }: DriverFile, { signal }: DriverCallOptions = {}): Promise<void> {
    return this.#use(true, signal, (files) => files.append(path, content, mode ?? NEW_FILE_MODE, signal));
  }

  stat(path: string, { signal }: DriverCallOptions = {}): Promise<FileStat | null> {
    return this.#use(false, signal, (files) => files.stat(path));
  }

  statTarget(path: string, { signal }: DriverCallOptions = {}): Promise<FileStat | null> {
    return this.#use(false, signal, (files) => files.statTarget(path));
  }

  list(path: string, { signal }: DriverCallOptions = {}): Promise<string[]> {
    return this.#use(false, signal, (files) => files.list(path, signal));
  }

  listDetails(path: string, { signal }: DriverCallOptions = {}): Promise<DirectoryEntry[]> {
    return this.#use(false, signal, (files) => files.listDetails(path, signal));
  }

  remove(path: string, { recursive, signal }: DriverCallOptions & { recursive: boolean }): Promise<boolean> {
    return this.#use(true, signal, (files) => files.remove(path, recursive, signal));
  }

  removeDirectory(path: string, { signal }: DriverCallOptions = {}): Promise<boolean> {
    return this.#use(true, signal, (files) => files.removeDirectory(path));
  }

  rename(from: string, to: string, { signal }: DriverCallOptions = {}): Promise<void> {
    return this.#use(true, signal, (files) => files.rename(from, to, signal));
  }

  copy(from: string, to: string, { recursive, signal }: DriverCallOptions & { recursive: boolean }): Promise<void> {
    return this.#use(true, signal, (files) => files.copy(from, to, recursive, signal));
  }

  makeDirectory(path: string, { signal }: DriverCallOptions = {}): Promise<void> {
    return this.#use(true, signal, (files) => files.makeDirectory(path));
  }

  importTree(tar: AsyncIterable<Uint8Array>, path: string, { signal }: DriverCallOptions = {}): Promise<void> {
    return this.#use(true, signal, (files) => files.importTree(tar, path, signal));
  }

  exportTree(path: string): AsyncIterable<Uint8Array> {
    return this.streamFiles((files) => files.exportTree(path));
  }

  /** The backend may let a call wait until nobody wants it any more. */
  #use<T>(isChange: boolean, signal: AbortSignal | undefined, work: (files: GuestFiles) => Promise<T>): Promise<T> {
    return this.useFiles(isChange, (files) => {
      signal?.throwIfAborted();
      return work(files);
    });
  }
}

/** How the calls of `anywhere` get to the guest. */
interface Ways {
  use<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T>;
  stream(work: (files: GuestFiles) => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  useStream(work: (files: GuestFiles) => Promise<FileStream>): Promise<FileStream>;
}

class AnywhereCalls extends GuestFileCalls {
  readonly #ways: Ways;

  constructor(ways: Ways) {
    super();
    this.#ways = ways;
  }

  protected override useFiles<T>(isChange: boolean, work: (files: GuestFiles) => Promise<T>): Promise<T> {
    return this.#ways.use(isChange, work);
  }

  protected override streamFiles(work: (files: GuestFiles) => AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    return this.#ways.stream(work);
  }

  protected override useStream(work: (files: GuestFiles) => Promise<FileStream>): Promise<FileStream> {
    return this.#ways.useStream(work);
  }
}
