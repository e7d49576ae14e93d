import type { Duplex } from "node:stream";
import { SandboxError } from "../../../contracts/errors.js";
import {
  ANSWER,
  encodeFrame,
  encodeHeader,
  type Frame,
  FrameParser,
  MAX_BODY,
  PROTOCOL_VERSION,
  tampered,
} from "./frames.js";

/** Ids of calls that the guest opens; ours are lower. */
const FIRST_ACCEPTED = 0x8000_0000;
/** An honest guest never has more connections at the same time. */
const MAX_ACCEPTED = 256;

/** The stream under a channel. Unreferenced, it does not keep the process alive. */
export interface ChannelStream extends Duplex {
  ref(): unknown;
  unref(): unknown;
  /** How much of one output may be in transit, if more than usual. */
  readonly window?: number;
}

/** Receives the guest's frames about one call. `closed` comes last if the channel ends first. */
export interface CallHandler {
  frame(frame: Frame): void;
  closed(error: SandboxError): void;
}

/** What the guest reports about itself when it starts. */
export interface Hello {
  /** Whether each call has its own PID namespace. */
  namespaced: boolean;
  /** What part of the isolation does not work; empty if all of it does. */
  complaint: string;
  /** Which requests it knows. A kept container may run the guest of the version that made it. */
  edition: number;
}

/** The host's end of the byte channel to one guest. */
export class GuestChannel {
  readonly #stream: ChannelStream;
  readonly #parser = new FrameParser();
  readonly #calls = new Map<number, CallHandler>();
  #sequence = 0;
  #nextCall = 1;
  #accepted = 0;
  #edition = 1;
  #error: SandboxError | undefined;
  #draining: Promise<void> | undefined;
  #isGathering = false;
  #hello: { resolve(hello: Hello): void; reject(error: SandboxError): void } | undefined;
  readonly hello: Promise<Hello>;
  /** Handles connections that processes in the sandbox make to the guest's listeners, by the place that the guest names; without one they are an attack. */
  readonly acceptors: Map<string, (call: number) => CallHandler> = new Map();
  /** Handles a query to the guest's resolver; undefined makes it an attack. */
  onQuery: ((body: Buffer) => void) | undefined;
  /** Called once, with the reason, when the channel ends. */
  onClosed: ((error: SandboxError) => void) | undefined;
  /** Resolves to the reason when the channel has ended. */
  readonly ended: Promise<SandboxError>;
  #end!: (error: SandboxError) => void;

  constructor(stream: ChannelStream) {
    this.#stream = stream;
    this.hello = new Promise((resolve, reject) => {
      this.#hello = { resolve, reject };
    });
    this.hello.catch(() => undefined); // the opener may have given up by then
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("error", (error: Error) => this.close(error instanceof SandboxError ? error : lost(error)));
    stream.on("close", () => this.close(lost()));
    stream.on("end", () => this.close(lost()));
  }

  get window(): number {
    return this.#stream.window ?? 0;
  }

  /** Whether it has ended. */
  get isClosed(): boolean {
    return this.#error !== undefined;
  }

  /** Whether no call is running. */
  get isIdle(): boolean {
    return this.#calls.size === 0;
  }

  /** Whether the guest knows the requests of an edition. */
  knows(edition: number): boolean {
    return this.#edition >= edition;
  }

  /** Throws `unsupported` if the guest is too old to know a request: it would end the sandbox instead. */
  assertEdition(edition: number, what: string): void {
    if (this.knows(edition)) return;
    throw new SandboxError(
      "unsupported",
      `${what} needs a sandbox of this version; this one was made by an older one`,
      {
        hint: "make a new sandbox",
      },
    );
  }

  /** Opens a call; every frame about it goes to `handler` until `endCall`. */
  open(handler: CallHandler): number {
    if (this.#error) throw this.#error;
    const call = this.#nextCall++;
    if (this.#calls.size === 0) this.#stream.ref();
    this.#calls.set(call, handler);
    return call;
  }

  /** Accepts a call that the guest opened; its frames go to the handler until `endCall`. */
  #accept({ call, body }: Frame): void {
    const refused = call < FIRST_ACCEPTED || this.#calls.has(call) || this.#accepted >= MAX_ACCEPTED;
    const acceptor = this.acceptors.get(body.toString("hex"));
    if (refused || !acceptor) throw tampered("a call that it must not open");
    this.#accepted += 1;
    this.#calls.set(call, acceptor(call));
  }

  #query(body: Buffer): void {
    if (!this.onQuery) throw tampered("a query that it must not");
    this.onQuery(body);
  }

  endCall(call: number): void {
    if (!this.#calls.delete(call)) return;
    if (call >= FIRST_ACCEPTED) this.#accepted -= 1;
    if (this.#calls.size === 0) this.unref();
  }

  /** Lets the process exit although the channel is open; a running call keeps it alive. */
  unref(): void {
    if (this.#calls.size === 0) this.#stream.unref();
  }

  /** Sends one frame; false if the sender should wait for `drained`. The frames of one tick leave in one write. */
  send(type: number, call: number, body: readonly Uint8Array[] = []): boolean {
    if (this.#error) throw this.#error;
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    // The guest would treat it as an attack and end the sandbox.
    if (length > MAX_BODY) {
      throw new SandboxError("limit_exceeded", `a request has ${length} bytes; at most ${MAX_BODY} can be sent`);
    }
    this.#gather();
    return this.#stream.write(encodeFrame(this.#sequence++, type, call, body));
  }

  /** Like `send`, for a body that never changes: it is not copied. */
  sendUncopied(type: number, call: number, body: Uint8Array): boolean {
    if (this.#error) throw this.#error;
    this.#gather();
    this.#stream.write(encodeHeader(this.#sequence++, type, call, body.length));
    return this.#stream.write(body);
  }

  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#stream.cork();
    process.nextTick(() => this.#flush());
  }

  /** Writes what was sent since the last tick: each write wakes the guest, which then takes the processor from this program. */
  #flush(): void {
    if (!this.#isGathering) return;
    this.#isGathering = false;
    this.#stream.uncork();
  }

  /** Resolves when the channel has room for more. */
  drained(): Promise<void> {
    if (this.#error || !this.#stream.writableNeedDrain) return Promise.resolve();
    this.#draining ??= new Promise<void>((resolve) => {
      const done = (): void => {
        this.#stream.off("drain", done).off("close", done);
        this.#draining = undefined;
        resolve();
      };
      this.#stream.on("drain", done).on("close", done);
    });
    return this.#draining;
  }

  /** Ends the channel, and with it everything in the sandbox. */
  close(error: SandboxError = new SandboxError("closed", "the sandbox is closed")): void {
    if (this.#error) return;
    this.#flush();
    this.#error = error;
    this.#stream.destroy();
    this.#hello?.reject(error);
    for (const handler of this.#calls.values()) handler.closed(error);
    this.#calls.clear();
    this.onClosed?.(error);
    this.#end(error);
  }

  #receive(chunk: Buffer): void {
    if (this.#error) return;
    try {
      for (const frame of this.#parser.push(chunk)) {
        if (frame.type === ANSWER.hello) this.#greet(frame);
        else if (frame.type === ANSWER.accepted) this.#accept(frame);
        else if (frame.type === ANSWER.query) this.#query(frame.body);
        else this.#dispatch(frame);
      }
    } catch (error) {
      this.close(error instanceof SandboxError ? error : lost(error));
    }
  }

  /** A call ends with its own last frame, so no frame may come for a call that is not here. */
  #dispatch(frame: Frame): void {
    const handler = this.#calls.get(frame.call);
    if (this.#hello) throw tampered("a frame before its greeting");
    if (!handler) throw tampered(`a frame about call ${frame.call}, which is not under way`);
    handler.frame(frame);
  }

  #greet({ call, body }: Frame): void {
    const hello = this.#hello;
    if (!hello || call !== 0 || body.readUInt32LE(0) !== PROTOCOL_VERSION)
      throw tampered("a greeting that it must not");
    this.#hello = undefined;
    const about = body[4] as number;
    this.#edition = (about >> 4) + 1;
    hello.resolve({
      namespaced: (about & 0x0f) === 1,
      complaint: body[5] === 1 ? "" : body.toString("utf8", 6) || "unknown",
      edition: this.#edition,
    });
  }
}

function lost(cause?: unknown): SandboxError {
  return new SandboxError("backend_lost", "the sandbox's guest is gone", { cause });
}
