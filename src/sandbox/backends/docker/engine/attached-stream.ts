import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { Demultiplexer } from "./demultiplexer.js";

const MAX_COMPLAINT = 4096;

/**
 * The connection to a container's streams: writes go to its stdin, reads come from its stdout. A reader that doesn't read
 * slows the container down. The start of stderr is kept as `complaint`.
 */
export class AttachedStream extends Duplex {
  readonly #socket: Socket;
  readonly #demultiplexer = new Demultiplexer();
  #complaint = "";

  constructor(socket: Socket) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  /** What the container wrote to stderr first. */
  get complaint(): string {
    return this.#complaint.trim();
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  #receive(chunk: Buffer): void {
    try {
      for (const { stream, bytes } of this.#demultiplexer.push(chunk)) {
        if (stream === "stdout") {
          if (!this.push(bytes)) this.#socket.pause();
        } else if (this.#complaint.length < MAX_COMPLAINT) {
          this.#complaint += bytes.toString("utf8", 0, MAX_COMPLAINT);
        }
      }
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#socket.write(chunk)) done();
    else this.#socket.once("drain", () => done());
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
