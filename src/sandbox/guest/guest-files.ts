import { constants } from "node:os";
import { SandboxError } from "../../../contracts/errors.js";
import type { DirectoryEntry, FileStat } from "../../../contracts/types.js";
import { readUpTo } from "../../util/read-up-to.js";
import { MAX_FILE_BYTES, MAX_IMPORT_BYTES } from "../types.js";
import { cancelledBy } from "./call-cancel.js";
import type { GuestChannel } from "./channel.js";
import { EntryRecords, typeOf } from "./entry-records.js";
import { archiveError, errorFor, GuestFailure } from "./failure.js";
import { modeForGuest } from "./file-mode.js";
import { BodyWriter, REQUEST, tampered } from "./frames.js";
import { GuestCall } from "./guest-process.js";

/** Content up to this size is sent in one frame. */
const INLINE_BYTES = 1 << 20;
/** A longer list is refused: the sandbox decides how long it is, and it has to fit into our memory. */
const MAX_LIST_BYTES = 64 << 20;
const MAX_COMPLAINT = 1024;
const { errno } = constants;
/** Failures of a rename or a copy that concern the place where it should go. */
const AT_TARGET: ReadonlySet<number> = new Set([errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR]);

/** File operations through the guest. `relative` turns a path into what the guest gets: one relative to its root, or an absolute one. */
export class GuestFiles {
  readonly #channel: GuestChannel;
  readonly #relative: (path: string) => string;

  constructor(channel: GuestChannel, relative: (path: string) => string) {
    this.#channel = channel;
    this.#relative = relative;
  }

  /** The same calls for absolute paths: the guest serves those with the rights of a command. */
  anywhere(): GuestFiles {
    this.#channel.assertEdition(3, 'paths: "sandbox"');
    return new GuestFiles(this.#channel, (path) => path);
  }

  async read(path: string, signal?: AbortSignal): Promise<Uint8Array | null> {
    const found = await this.readUpTo(path, MAX_FILE_BYTES, signal);
    if (found !== undefined) return found;
    throw new SandboxError("limit_exceeded", `${path} is larger than ${MAX_FILE_BYTES} bytes`, {
      hint: "read it with readStream",
    });
  }

  /** Like `read`, for a file of at most so many bytes; undefined for a larger one. */
  async readUpTo(path: string, most: number, signal?: AbortSignal): Promise<Uint8Array | null | undefined> {
    const call = this.#call(REQUEST.read, path);
    try {
      await call.started();
      if (call.result) return call.result.length > most ? undefined : call.result;
      const chunks: Uint8Array[] = [];
      const length = await cancelledBy(signal, call, () => gather(call, chunks, most));
      return length > most ? undefined : Buffer.concat(chunks, length);
    } catch (error) {
      return absent(error, path, null);
    }
  }

  /** A file of any size, or a part of it, pulled; null if it does not exist. */
  async readStream(
    path: string,
    opts: { start: number; length?: number; signal?: AbortSignal },
  ): Promise<AsyncIterable<Uint8Array> | null> {
    this.#channel.assertEdition(2, "readStream");
    const { start, length = Number.MAX_SAFE_INTEGER, signal } = opts;
    const call = new GuestCall(this.#channel, REQUEST.readRange, this.#body(path).u64(start).u64(length).pieces);
    try {
      await cancelledBy(signal, call, () => call.started());
    } catch (error) {
      return absent(error, path, null);
    }
    const iterator = call.stdout[Symbol.asyncIterator]();
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      const chunk = await iterator.next();
      if (chunk.done !== true) return chunk;
      const exit = await named(path, () => call.wait());
      if (exit.exitCode !== 0) throw new SandboxError("aborted", `reading ${path} was ended`);
      return chunk;
    };
    const end = async (): Promise<IteratorResult<Uint8Array>> => {
      await call.kill("SIGKILL");
      return { done: true, value: undefined };
    };
    return { [Symbol.asyncIterator]: () => ({ next, return: end }) };
  }

  async write(path: string, content: Uint8Array, mode: number | undefined, signal?: AbortSignal): Promise<void> {
    const body = this.#body(path).u32(modeForGuest(mode));
    if (content.length <= INLINE_BYTES) {
      await named(path, () => new GuestCall(this.#channel, REQUEST.write, body.bytes(content).pieces).wait());
      return;
    }
    await this.#send(new GuestCall(this.#channel, REQUEST.writeStream, body.pieces), path, content, signal);
  }

  /** Writes a file from a stream of any size, whole or not at all. */
  async writeStream(
    path: string,
    source: AsyncIterable<Uint8Array>,
    mode: number | undefined,
    signal?: AbortSignal,
  ): Promise<void> {
    const call = new GuestCall(this.#channel, REQUEST.writeStream, this.#body(path).u32(modeForGuest(mode)).pieces);
    await this.#send(call, path, source, signal);
  }

  /** Adds to a file: all of the content or nothing. */
  async append(path: string, content: Uint8Array, mode: number, signal?: AbortSignal): Promise<void> {
    this.#channel.assertEdition(2, "appendFile");
    const body = this.#body(path).u32(mode);
    if (content.length <= INLINE_BYTES) {
      await named(path, () => new GuestCall(this.#channel, REQUEST.append, body.bytes(content).pieces).wait());
      return;
    }
    await this.#send(new GuestCall(this.#channel, REQUEST.appendStream, body.pieces), path, content, signal);
  }

  /** Sends the content of a call that takes effect only when it is complete. */
  async #send(
    call: GuestCall,
    path: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const send = async (): Promise<void> => {
      await call.started();
      if (content instanceof Uint8Array) await call.writeStdin(content);
      else await feed(call, content);
      signal?.throwIfAborted();
      await call.closeStdin();
      await call.wait();
    };
    await named(path, () => cancelledBy(signal, call, send));
  }

  async stat(path: string): Promise<FileStat | null> {
    return await this.#describe(REQUEST.stat, path);
  }

  /** Like `stat`, but of what a link leads to. */
  async statTarget(path: string): Promise<FileStat | null> {
    this.#channel.assertEdition(2, "Following a link");
    return await this.#describe(REQUEST.statTarget, path);
  }

  async #describe(request: number, path: string): Promise<FileStat | null> {
    try {
      const body = await this.#result(request, path);
      const type = body.length === 21 ? typeOf(body[0]) : undefined;
      if (!type) return this.#distrust("a description that cannot be read");
      return {
        type,
        size: Number(body.readBigUInt64LE(1)),
        mode: body.readUInt32LE(9),
        mtimeMs: Number(body.readBigInt64LE(13)),
      };
    } catch (error) {
      return absent(error, path, null);
    }
  }

  async list(path: string, signal?: AbortSignal): Promise<string[]> {
    if (this.#channel.knows(2)) return (await this.#entries(path, false, signal)).names;
    const body = await named(path, () => this.#result(REQUEST.list, path));
    return namesIn(body) ?? this.#distrust("a list that cannot be read");
  }

  /** What each entry of a directory is. */
  async listDetails(path: string, signal?: AbortSignal): Promise<DirectoryEntry[]> {
    this.#channel.assertEdition(2, "A list with details");
    return (await this.#entries(path, true, signal)).entries;
  }

  async #entries(path: string, withDetails: boolean, signal: AbortSignal | undefined): Promise<EntryRecords> {
    const body = this.#body(path).u8(withDetails ? 1 : 0).pieces;
    const call = new GuestCall(this.#channel, REQUEST.listEntries, body);
    const records = new EntryRecords(withDetails);
    const take = (chunk: Uint8Array): void => {
      if (!records.push(chunk)) this.#distrust("a list that cannot be read");
    };
    await named(path, async () => {
      await call.started();
      if (call.result) take(call.result);
      else await cancelledBy(signal, call, () => gather(call, { push: take }, MAX_LIST_BYTES)).then(assertListable);
      await call.wait();
    });
    return records.isWhole ? records : this.#distrust("a list that is cut off");
  }

  async remove(path: string, recursive: boolean, signal?: AbortSignal): Promise<boolean> {
    const call = new GuestCall(this.#channel, REQUEST.remove, this.#body(path).u8(recursive ? 1 : 0).pieces);
    try {
      const exit = await cancelledBy(recursive ? signal : undefined, call, () => call.wait());
      if (exit.exitCode !== 0) throw new GuestFailure(exit.exitCode, path);
      return true;
    } catch (error) {
      return absent(error, path, false);
    }
  }

  /** Removes an empty directory; returns whether there was one. */
  async removeDirectory(path: string): Promise<boolean> {
    this.#channel.assertEdition(2, "Removing an empty directory");
    try {
      await this.#result(REQUEST.removeDirectory, path);
      return true;
    } catch (error) {
      return absent(error, path, false);
    }
  }

  /** Renames. What lies on another file system, or in the base of an overlay, is copied and then removed. */
  async rename(from: string, to: string, signal?: AbortSignal): Promise<void> {
    const body = this.#body(from).string(this.#relative(to));
    try {
      await new GuestCall(this.#channel, REQUEST.rename, body.pieces).wait();
    } catch (error) {
      if (!(error instanceof GuestFailure)) throw error;
      if (error.number !== errno.EXDEV || !this.#channel.knows(2)) throw this.#misplaced(error, from, to);
      await this.copy(from, to, true, signal);
      await this.remove(from, true, signal);
    }
  }

  /** Copies a file, a link or a tree, whole or not at all. */
  async copy(from: string, to: string, recursive: boolean, signal?: AbortSignal): Promise<void> {
    this.#channel.assertEdition(2, "copy");
    const body = this.#body(from)
      .string(this.#relative(to))
      .u8(recursive ? 1 : 0);
    const call = new GuestCall(this.#channel, REQUEST.copy, body.pieces);
    const detail = complaintOf(call);
    try {
      const { exitCode } = await cancelledBy(signal, call, () => call.wait());
      if (exitCode === 0) return;
      const where = await detail;
      if (where !== "") throw archiveError(exitCode, where);
      throw exitCode < FIRST_OWN ? new GuestFailure(exitCode, this.#relative(from)) : archiveError(exitCode, from);
    } catch (error) {
      throw error instanceof GuestFailure ? this.#misplaced(error, from, to) : error;
    }
  }

  /** The error of a rename or a copy, about the path that it concerns. */
  #misplaced(error: GuestFailure, from: string, to: string): SandboxError {
    if (error.number === errno.EINVAL) {
      return new SandboxError("invalid_argument", `${from} can't be put into itself: ${to} is inside it`, {
        hint: "choose a path beside it",
      });
    }
    const isTarget = AT_TARGET.has(error.number) || error.subject === this.#relative(to);
    return errorFor(error.number, isTarget ? to : from);
  }

  async makeDirectory(path: string): Promise<void> {
    try {
      await this.#result(REQUEST.makeDirectory, path);
    } catch (error) {
      const inTheWay =
        error instanceof GuestFailure && error.code === "invalid_path" && !error.message.includes("too long");
      if (inTheWay) throw new SandboxError("conflict", `${path} can't be made: a file is in the way`);
      throw about(error, path);
    }
  }

  async importTree(tar: AsyncIterable<Uint8Array>, path: string, signal?: AbortSignal): Promise<void> {
    const call = new GuestCall(this.#channel, REQUEST.tarIn, this.#body(path).u32(MAX_IMPORT_BYTES / 2 ** 20).pieces);
    await named(path, () => call.started());
    const detail = complaintOf(call);
    await feed(call, tar);
    await call.closeStdin();
    const exit = await cancelledBy(signal, call, () => call.wait());
    if (exit.exitCode !== 0) throw archiveError(exit.exitCode, await detail);
  }

  async *exportTree(path: string): AsyncGenerator<Uint8Array> {
    const call = this.#call(REQUEST.tarOut, path);
    await named(path, () => call.started());
    const detail = complaintOf(call);
    let complete = false;
    try {
      yield* call.stdout;
      complete = true;
    } finally {
      if (!complete) await call.kill("SIGKILL");
    }
    const exit = await call.wait();
    if (exit.exitCode !== 0) throw archiveError(exit.exitCode, await detail);
  }

  #body(path: string): BodyWriter {
    return new BodyWriter().string(this.#relative(path));
  }

  #call(type: number, path: string): GuestCall {
    return new GuestCall(this.#channel, type, this.#body(path).pieces);
  }

  async #result(type: number, path: string): Promise<Buffer> {
    const call = this.#call(type, path);
    await call.wait();
    return call.result ?? this.#distrust("no result");
  }

  /** Ends the sandbox: a guest that answers like this is no longer ours. */
  #distrust(what: string): never {
    const error = tampered(what);
    this.#channel.close(error);
    throw error;
  }
}

/** Sends a stream. If it fails, the call is ended, and nothing of it takes effect. */
async function feed(call: GuestCall, source: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of source) {
      await call.writeStdin(chunk);
      // It was refused; the rest may be endless.
      if (call.isOver) break;
    }
  } catch (error) {
    await call.kill("SIGKILL");
    throw error;
  }
}

/** Reads the output of a call until it ends or is longer than allowed; returns how much there was. */
async function gather(call: GuestCall, to: { push(chunk: Uint8Array): unknown }, most: number): Promise<number> {
  let length = 0;
  for await (const chunk of call.stdout) {
    length += chunk.length;
    if (length > most) {
      await call.kill("SIGKILL");
      return length;
    }
    to.push(chunk);
  }
  return length;
}

function assertListable(length: number): void {
  if (length <= MAX_LIST_BYTES) return;
  throw new SandboxError(
    "limit_exceeded",
    `The directory has too many entries: the list is larger than ${MAX_LIST_BYTES} bytes`,
    {
      hint: "list it with a command, such as find",
    },
  );
}

/** The names of a directory; undefined if the guest lied about a length or a name. */
function namesIn(body: Buffer): string[] | undefined {
  const names: string[] = [];
  for (let at = 0; at < body.length; ) {
    const length = at + 4 <= body.length ? body.readUInt32LE(at) : 0;
    if (length === 0 || length > 255 || at + 4 + length > body.length) return undefined;
    const name = body.subarray(at + 4, at + 4 + length);
    if (name.includes(0) || name.includes(0x2f)) return undefined;
    names.push(name.toString("utf8"));
    at += 4 + length;
  }
  return names;
}

/** From here on an exit code is one of the archive calls' own. */
const FIRST_OWN = 200;

/** Repeats a guest's failure with the path as the caller knows it. */
function about(error: unknown, path: string): unknown {
  return error instanceof GuestFailure ? errorFor(error.number, path) : error;
}

async function named<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw about(error, path);
  }
}

/** A missing file is an answer, not a failure. So is one below something that is not a directory. */
function absent<T>(error: unknown, path: string, answer: T): T {
  if (error instanceof GuestFailure && (error.number === errno.ENOENT || error.number === errno.ENOTDIR)) return answer;
  throw about(error, path);
}

function complaintOf({ stderr }: GuestCall): Promise<string> {
  const complaint = readUpTo(stderr, MAX_COMPLAINT).then(({ bytes }) => bytes.toString("utf8"));
  // Nobody awaits it if the archive itself failed, and the sandbox may end before it settles.
  complaint.catch(() => undefined);
  return complaint;
}
