import { SandboxError } from "../../../contracts/errors.js";
import type { FileStat } from "../../../contracts/types.js";
import { readUpTo } from "../../util/read-up-to.js";
import { MAX_FILE_BYTES, MAX_IMPORT_BYTES } from "../types.js";
import type { GuestChannel } from "./channel.js";
import { archiveError, errorFor, GuestFailure } from "./failure.js";
import { BodyWriter, REQUEST, tampered } from "./frames.js";
import { GuestCall } from "./guest-process.js";

/** Content up to this size is sent in one frame. */
const INLINE_BYTES = 1 << 20;
const MAX_COMPLAINT = 1024;
const FILE_TYPES = ["file", "directory", "symlink", "other"] as const;

/** File operations through the guest. Paths are relative to its root; `shown` is the path as the caller named it. */
export class GuestFiles {
  readonly #channel: GuestChannel;
  readonly #relative: (path: string) => string;

  constructor(channel: GuestChannel, relative: (path: string) => string) {
    this.#channel = channel;
    this.#relative = relative;
  }

  async read(path: string): Promise<Uint8Array | null> {
    const found = await this.readUpTo(path, MAX_FILE_BYTES);
    if (found !== undefined) return found;
    throw new SandboxError("limit_exceeded", `${path} is larger than ${MAX_FILE_BYTES} bytes`);
  }

  /** Like `read`, for a file of at most so many bytes; undefined for a larger one. */
  async readUpTo(path: string, most: number): Promise<Uint8Array | null | undefined> {
    const call = this.#call(REQUEST.read, path);
    try {
      await call.started();
      if (call.result) return call.result.length > most ? undefined : call.result;
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of call.stdout) {
        length += chunk.length;
        if (length > most) {
          await call.kill("SIGKILL");
          return undefined;
        }
        chunks.push(chunk);
      }
      return Buffer.concat(chunks, length);
    } catch (error) {
      return absent(error, path, null);
    }
  }

  async write(path: string, content: Uint8Array, mode: number): Promise<void> {
    const small = content.length <= INLINE_BYTES;
    const body = this.#body(path).u32(mode);
    const call = small
      ? new GuestCall(this.#channel, REQUEST.write, body.bytes(content).pieces)
      : new GuestCall(this.#channel, REQUEST.writeStream, body.pieces);
    await named(path, async () => {
      await call.started();
      if (!small) {
        await call.writeStdin(content);
        await call.closeStdin();
      }
      await call.wait();
    });
  }

  async stat(path: string): Promise<FileStat | null> {
    try {
      const body = await this.#result(REQUEST.stat, path);
      const type = body.length === 21 ? FILE_TYPES[body[0] as number] : undefined;
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

  async list(path: string): Promise<string[]> {
    const body = await named(path, () => this.#result(REQUEST.list, path));
    return namesIn(body) ?? this.#distrust("a list that cannot be read");
  }

  async remove(path: string, recursive: boolean): Promise<boolean> {
    const call = new GuestCall(this.#channel, REQUEST.remove, this.#body(path).u8(recursive ? 1 : 0).pieces);
    try {
      const exit = await call.wait();
      if (exit.exitCode !== 0) throw new GuestFailure(exit.exitCode, path);
      return true;
    } catch (error) {
      return absent(error, path, false);
    }
  }

  async rename(from: string, to: string): Promise<void> {
    const body = this.#body(from).string(this.#relative(to));
    await named(from, () => new GuestCall(this.#channel, REQUEST.rename, body.pieces).wait());
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

  async importTree(tar: AsyncIterable<Uint8Array>, path: string): Promise<void> {
    const call = new GuestCall(this.#channel, REQUEST.tarIn, this.#body(path).u32(MAX_IMPORT_BYTES / 2 ** 20).pieces);
    await named(path, () => call.started());
    const detail = complaintOf(call);
    try {
      for await (const chunk of tar) {
        await call.writeStdin(chunk);
        // The import was refused; the rest may be endless.
        if (call.isOver) break;
      }
      await call.closeStdin();
    } catch (error) {
      await call.kill("SIGKILL");
      throw error;
    }
    const exit = await call.wait();
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
  if (error instanceof GuestFailure && (error.code === "not_found" || error.code === "invalid_path")) {
    if (!error.message.includes("too long")) return answer;
  }
  throw about(error, path);
}

function complaintOf({ stderr }: GuestCall): Promise<string> {
  const complaint = readUpTo(stderr, MAX_COMPLAINT).then(({ bytes }) => bytes.toString("utf8"));
  // Nobody awaits it if the archive itself failed, and the sandbox may end before it settles.
  complaint.catch(() => undefined);
  return complaint;
}
