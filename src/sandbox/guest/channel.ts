import type { Duplex } from "node:stream";
import { SandboxError } from "../../../contracts/errors.js";
import { ANSWER, encodeFrame, type Frame, FrameParser, MAX_BODY, PROTOCOL_VERSION, tampered } from "./frames.js";

/** Ids of calls that the guest opens; ours are below. */
const FIRST_ACCEPTED = 0x8000_0000;
/** As many connections as an honest guest has at one time. */
const MAX_ACCEPTED = 256;

/** What a channel goes over. Unreferenced, it does not keep the process alive. */
export interface ChannelStream extends Duplex {
  ref(): unknown;
  unref(): unknown;
  /** How much of one output may be on the way at one time, where that is more than usual. */
  readonly window?: number;
}

/** Receives what the guest says of one call. `closed` is the last word when the channel ends first. */
export interface CallHandler {
  frame(frame: Frame): void;
  closed(error: SandboxError): void;
}

/** What the guest said of itself at its start. */
export interface Hello {
  /** Whether each call has its own PID namespace. */
  namespaced: boolean;
  /** What does not hold of the isolation; empty when everything does. */
  complaint: string;
}

/** The host's end of the byte channel to one guest. */
export class GuestChannel {
  readonly #stream: ChannelStream;
  readonly #parser = new FrameParser();
  readonly #calls = new Map<number, CallHandler>();
  #sequence = 0;
  #nextCall = 1;
  #accepted = 0;
  #error: SandboxError | undefined;
  #draining: Promise<void> | undefined;
  #hello: { resolve(hello: Hello): void; reject(error: SandboxError): void } | undefined;
  readonly hello: Promise<Hello>;
  /** Takes a connection that was made inside to the guest's listener; undefined turns it away. */
  onAccepted: ((call: number) => CallHandler) | undefined;
  /** Called once, with the reason, when the channel ends. */
  onClosed: ((error: SandboxError) => void) | undefined;

  constructor(stream: ChannelStream) {
    this.#stream = stream;
    this.hello = new Promise((resolve, reject) => {
      this.#hello = { resolve, reject };
    });
    this.hello.catch(() => undefined); // the opener may have given up by then
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("error", (error: Error) => this.close(error instanceof SandboxError ? error : lost(error)));
    stream.on("close", () => this.close(lost()));
    stream.on("end", () => this.close(lost()));
  }

  get window(): number {
    return this.#stream.window ?? 0;
  }

  /** Whether no call is under way. */
  get isIdle(): boolean {
    return this.#calls.size === 0;
  }

  /** Opens a call; every frame about it goes to `handler` until `release`. */
  open(handler: CallHandler): number {
    if (this.#error) throw this.#error;
    const call = this.#nextCall++;
    if (this.#calls.size === 0) this.#stream.ref();
    this.#calls.set(call, handler);
    return call;
  }

  /** Takes on a call that the guest opened; its frames go to `handler` until `release`. */
  #accept(call: number): void {
    const refused = call < FIRST_ACCEPTED || this.#calls.has(call) || this.#accepted >= MAX_ACCEPTED;
    if (refused || !this.onAccepted) throw tampered("a call that it must not open");
    this.#accepted += 1;
    this.#calls.set(call, this.onAccepted(call));
  }

  release(call: number): void {
    if (!this.#calls.delete(call)) return;
    if (call >= FIRST_ACCEPTED) this.#accepted -= 1;
    if (this.#calls.size === 0) this.unref();
  }

  /** Lets the process end although the channel is open; a call under way holds it. */
  unref(): void {
    if (this.#calls.size === 0) this.#stream.unref();
  }

  /** Sends one frame; false when the channel wants the sender to wait for `drained`. */
  send(type: number, call: number, body: readonly Uint8Array[] = []): boolean {
    if (this.#error) throw this.#error;
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    // The guest would take it for an attack and end the sandbox.
    if (length > MAX_BODY) {
      throw new SandboxError("limit_exceeded", `a request has ${length} bytes; at most ${MAX_BODY} can be sent`);
    }
    return this.#stream.write(encodeFrame(this.#sequence++, type, call, body));
  }

  /** Resolves when the channel takes more. */
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

  /** Ends the channel, and with it everything inside. */
  close(error: SandboxError = new SandboxError("closed", "the sandbox is closed")): void {
    if (this.#error) return;
    this.#error = error;
    this.#stream.destroy();
    this.#hello?.reject(error);
    for (const handler of this.#calls.values()) handler.closed(error);
    this.#calls.clear();
    this.onClosed?.(error);
  }

  #receive(chunk: Buffer): void {
    if (this.#error) return;
    try {
      for (const frame of this.#parser.push(chunk)) {
        if (frame.type === ANSWER.hello) this.#greet(frame);
        else if (frame.type === ANSWER.accepted) this.#accept(frame.call);
        else this.#dispatch(frame);
      }
    } catch (error) {
      this.close(error instanceof SandboxError ? error : lost(error));
    }
  }

  /** A call is released by its own last frame, so there is nothing to be said of one that is not here. */
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
    hello.resolve({ namespaced: body[4] === 1, complaint: body[5] === 1 ? "" : body.toString("utf8", 6) || "unknown" });
  }
}

function lost(cause?: unknown): SandboxError {
  return new SandboxError("backend_lost", "the sandbox's guest is gone", { cause });
}
