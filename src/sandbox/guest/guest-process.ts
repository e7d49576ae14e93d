import { constants } from "node:os";
import { SandboxError } from "../../../contracts/errors.js";
import type { DriverExit, DriverProcess, StartSpec } from "../types.js";
import { ByteQueue } from "./byte-queue.js";
import type { CallHandler, GuestChannel } from "./channel.js";
import { failure } from "./failure.js";
import { ANSWER, BodyWriter, DATA_BYTES, type Frame, REQUEST, tampered } from "./frames.js";

const WINDOW = 256 << 10;
/** Credit is returned in such a fraction of the window, so that a fast stream does not send one message per chunk. */
const CREDIT_PARTS = 4;
/** The fraction for a slow link, where each message is a request to a service. */
const WIDE_PARTS = 2;

/** How each call can end, besides with a failure: an exit after streams, a result, or either. */
const ENDS: Readonly<Record<number, "exit" | "result" | "either">> = {
  [REQUEST.start]: "exit",
  [REQUEST.connect]: "exit",
  [REQUEST.tarIn]: "exit",
  [REQUEST.tarOut]: "exit",
  [REQUEST.read]: "either",
  [REQUEST.remove]: "either",
  [REQUEST.writeStream]: "either",
  [REQUEST.listEntries]: "either",
  [REQUEST.appendStream]: "either",
  [REQUEST.copy]: "exit",
  [REQUEST.readRange]: "exit",
};

/** One call of the guest with streams: a command, a large file, an archive. */
export class GuestCall implements CallHandler {
  readonly stdout: ByteQueue;
  readonly stderr: ByteQueue;
  readonly #channel: GuestChannel;
  readonly #call: number;
  readonly #ended: Promise<DriverExit>;
  readonly #started: Promise<void>;
  #settle!: {
    end(exit: DriverExit): void;
    fail(error: SandboxError): void;
    start(): void;
    refuse(error: SandboxError): void;
  };
  readonly #ends: "exit" | "result" | "either";
  #running = false;
  /** A connection may have no more output and still accept input. */
  #isConnection = false;
  #outputEnded = false;
  #over = false;
  readonly #taken = [0, 0, 0];
  /** How much the guest may still send of each stream. */
  readonly #window = [0, WINDOW, WINDOW];
  readonly #width = [0, WINDOW, WINDOW];
  readonly #widest: number;
  #stdinRoom: number;
  #stdinWaiting: { promise: Promise<void>; resolve(): void } | undefined;
  /** Body of an ANS_RESULT, for calls that end with one. */
  result: Buffer | undefined;
  /** The outputs of which the guest may leave something out. */
  kept: StartSpec["kept"];
  #leftOut: DriverExit["leftOut"];

  /** Opens a call with its first request, or accepts one that the guest opened. */
  constructor(channel: GuestChannel, type: number | "accepted", body: readonly Uint8Array[] | number) {
    this.#channel = channel;
    this.stdout = new ByteQueue((bytes) => this.#credit(1, bytes));
    this.stderr = new ByteQueue((bytes) => this.#credit(2, bytes));
    let start!: () => void;
    let refuse!: (error: SandboxError) => void;
    let end!: (exit: DriverExit) => void;
    let fail!: (error: SandboxError) => void;
    this.#started = new Promise((resolve, reject) => {
      start = resolve;
      refuse = reject;
    });
    this.#ended = new Promise((resolve, reject) => {
      end = resolve;
      fail = reject;
    });
    // Awaiting it is optional.
    this.#started.catch(() => undefined);
    this.#ended.catch(() => undefined);
    this.#settle = { start, refuse, end, fail };
    this.#widest = Math.max(WINDOW, channel.window);
    this.#stdinRoom = this.#widest;
    this.#ends = type === "accepted" ? "exit" : (ENDS[type] ?? "result");
    if (typeof type !== "number" || typeof body === "number") {
      this.#call = body as number;
      this.#running = true;
      this.#isConnection = true;
      return;
    }
    this.#isConnection = type === REQUEST.connect;
    this.#call = channel.open(this);
    try {
      channel.send(type, this.#call, body);
    } catch (error) {
      channel.endCall(this.#call);
      throw error;
    }
  }

  /** Resolves once the guest has accepted the call; rejects with the reason if it refuses. */
  started(): Promise<void> {
    return this.#started;
  }

  wait(): Promise<DriverExit> {
    return this.#ended;
  }

  /** With `isOwned` the chunk never changes, and is not copied. */
  async writeStdin(chunk: Uint8Array, isOwned = false): Promise<void> {
    for (let at = 0; at < chunk.length && !this.#over; ) {
      if (this.#stdinRoom === 0) {
        this.#stdinWaiting ??= waiting();
        await this.#stdinWaiting.promise;
        continue;
      }
      const part = chunk.subarray(at, at + Math.min(this.#stdinRoom, DATA_BYTES));
      this.#stdinRoom -= part.length;
      at += part.length;
      const hasRoom = isOwned
        ? this.#channel.sendUncopied(REQUEST.stdin, this.#call, part)
        : this.#channel.send(REQUEST.stdin, this.#call, [part]);
      if (!hasRoom) await this.#channel.drained();
    }
  }

  /** Whether the call neither sends nor accepts anything more. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Resolves once the receiver has read everything that was written. */
  async flushed(): Promise<void> {
    while (this.#stdinRoom < this.#widest && !this.#over) {
      this.#stdinWaiting ??= waiting();
      await this.#stdinWaiting.promise;
    }
  }

  async closeStdin(): Promise<void> {
    if (!this.#over) this.#channel.send(REQUEST.stdinEnd, this.#call);
  }

  async kill(signal: string): Promise<void> {
    const number = (constants.signals as Readonly<Record<string, number>>)[signal];
    if (number === undefined) throw new SandboxError("invalid_argument", `unknown signal "${signal}"`);
    if (!this.#over) this.#channel.send(REQUEST.signal, this.#call, [Uint8Array.of(number)]);
  }

  async resize(cols: number, rows: number): Promise<void> {
    if (!this.#over) this.#channel.send(REQUEST.resize, this.#call, new BodyWriter().u16(cols).u16(rows).pieces);
  }

  /** Throws `tampered` for a frame that can't come now. The channel then ends, and every call with it. */
  frame({ type, body }: Frame): void {
    switch (type) {
      case ANSWER.started:
        if (this.#running) throw tampered("a second start of one call");
        this.#running = true;
        this.#settle.start();
        return;
      case ANSWER.stdout:
        this.#receive(1, body);
        return;
      case ANSWER.stderr:
        this.#receive(2, body);
        return;
      case ANSWER.ended:
        if (!this.#isConnection || !this.#running || this.#outputEnded)
          throw tampered("half an end that this call cannot have");
        this.#outputEnded = true;
        this.stdout.end();
        return;
      case ANSWER.stdinCredit:
        this.#stdinRoom += body.readUInt32LE(0);
        if (!this.#running || this.#stdinRoom > this.#widest) throw tampered("more room than there was");
        this.#resumeStdin();
        return;
      case ANSWER.exit:
        if (!this.#running || this.#ends === "result") throw tampered("an end that this call cannot have");
        this.#finish(this.#leftOut === undefined ? exitOf(body) : { ...exitOf(body), leftOut: this.#leftOut });
        return;
      case ANSWER.leftOut:
        if (!this.#running || this.#leftOut !== undefined) throw tampered("less output than was asked for");
        this.#leftOut = leftOutOf(body, this.kept);
        return;
      case ANSWER.result:
        if (this.#ends === "exit") throw tampered("a result that this call cannot have");
        this.result = body;
        this.#finish({ exitCode: 0 });
        return;
      default:
        this.closed(failure(body));
    }
  }

  /** A guest that ignores flow control would fill our memory. */
  #receive(stream: 1 | 2, body: Buffer): void {
    const left = (this.#window[stream] ?? 0) - body.length;
    const isPossible = this.#running && !this.#outputEnded && !(this.#isConnection && stream === 2);
    if (!isPossible || left < 0) throw tampered("output that nobody asked for");
    this.#window[stream] = left;
    (stream === 1 ? this.stdout : this.stderr).push(body);
  }

  /** From now on output on stderr is `tampered`: the command has one stream. */
  expectNoStderr(): void {
    this.#window[2] = 0;
  }

  closed(error: SandboxError): void {
    this.#end(error);
    this.#settle.refuse(error);
    this.#settle.fail(error);
  }

  #finish(exit: DriverExit): void {
    this.#end();
    this.#settle.start();
    this.#settle.end(exit);
  }

  #end(error?: SandboxError): void {
    this.#over = true;
    this.#channel.endCall(this.#call);
    this.stdout.end(error);
    this.stderr.end(error);
    this.#resumeStdin();
  }

  #resumeStdin(): void {
    this.#stdinWaiting?.resolve();
    this.#stdinWaiting = undefined;
  }

  #credit(stream: 1 | 2, bytes: number): void {
    const taken = (this.#taken[stream] ?? 0) + bytes;
    const width = this.#width[stream] ?? WINDOW;
    const isDue = taken >= width / (width > WINDOW ? WIDE_PARTS : CREDIT_PARTS) && !this.#over;
    this.#taken[stream] = isDue ? 0 : taken;
    if (!isDue) return;
    // A flowing stream may have more in transit where the link is slow.
    const grant = taken + this.#widest - width;
    this.#width[stream] = this.#widest;
    this.#window[stream] = (this.#window[stream] ?? 0) + grant;
    this.#channel.send(REQUEST.credit, this.#call, new BodyWriter().u8(stream).u32(grant).pieces);
  }
}

function waiting(): { promise: Promise<void>; resolve(): void } {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function exitOf(body: Buffer): DriverExit {
  const signaled = body[0] as number;
  const code = body.readInt32LE(1);
  const flags = body[5] as number;
  if (signaled > 1 || flags > 7 || code < signaled || code > (signaled === 1 ? 64 : 255))
    throw tampered("an end that cannot be read");
  const why = {
    ...(flags & EXIT_TIMED_OUT && { timedOut: true }),
    // A program that lost a child to the OOM killer reports it by its own exit code.
    ...(flags & EXIT_OOM_KNOWN && { oomKilled: (flags & EXIT_OOM) !== 0 && (signaled === 1 || code !== 0) }),
  };
  if (signaled === 0) return { exitCode: code, ...why };
  const name = Object.entries(constants.signals).find(([, number]) => number === code)?.[0];
  return { exitCode: 128 + code, signal: name ?? `SIG${code}`, ...why };
}

function leftOutOf(body: Buffer, kept: StartSpec["kept"]): NonNullable<DriverExit["leftOut"]> {
  const stdout = Number(body.readBigUInt64LE(0));
  const stderr = Number(body.readBigUInt64LE(8));
  const isAsked = (bytes: number, most: number | undefined): boolean =>
    bytes === 0 || (most !== undefined && Number.isSafeInteger(bytes));
  if (!isAsked(stdout, kept?.stdout) || !isAsked(stderr, kept?.stderr))
    throw tampered("less output than was asked for");
  return { stdout, stderr };
}

const EXIT_TIMED_OUT = 1;
const EXIT_OOM_KNOWN = 2;
const EXIT_OOM = 4;
const WITH_STDIN = 1;
const WITH_TERMINAL = 2;
const WITH_USER = 4;
const WITH_CAPABILITIES = 8;
const WITH_KEPT = 16;
const WITH_COMBINED = 32;
/** The guest may report the start together with what follows it. Guests that don't know this report it at once. */
const WITH_LATE_START = 128;
/** A caller that keeps more of an output than this gets all of it: the guest has no memory for such a long tail. */
const MAX_KEPT = 4 << 20;
const ALL = 0xffff_ffff;
/** The kernel's limit for one argument or variable, including its terminating zero. */
const MAX_STRING = 128 << 10;

/** A command as the guest can start it. */
export interface GuestCommand extends StartSpec {
  /** In a container: whether the command keeps the container's capabilities. Default false. */
  readonly keepCapabilities?: boolean;
}

/** Starts a command; `cwd` is relative to the guest's root, or absolute. */
export async function startCommand(channel: GuestChannel, spec: GuestCommand, cwd: string): Promise<DriverProcess> {
  if (cwd.startsWith("/")) channel.assertEdition(3, 'paths: "sandbox"');
  const env = Object.entries(spec.env).map(([key, value]) => `${key}=${value}`);
  for (const text of [...spec.argv, ...env]) {
    if (Buffer.byteLength(text) >= MAX_STRING) {
      throw new SandboxError(
        "limit_exceeded",
        `an argument or variable has ${Buffer.byteLength(text)} bytes; at most ${MAX_STRING - 1} can be passed`,
      );
    }
  }
  if (spec.combined === true) channel.assertEdition(2, 'output: "combined"');
  const flags =
    (spec.stdin === "pipe" ? WITH_STDIN : 0) |
    (spec.pty ? WITH_TERMINAL : 0) |
    (spec.user === undefined ? 0 : WITH_USER) |
    (spec.keepCapabilities === true ? WITH_CAPABILITIES : 0) |
    (spec.kept === undefined ? 0 : WITH_KEPT) |
    (spec.combined === true ? WITH_COMBINED : 0) |
    (spec.kept !== undefined && spec.stdin === "none" ? WITH_LATE_START : 0);
  const body = new BodyWriter()
    .u8(flags)
    .u16(spec.pty?.cols ?? 0)
    .u16(spec.pty?.rows ?? 0)
    .u32(Math.min(Math.ceil(spec.timeout ?? 0), 0x7fffffff))
    .string(cwd)
    .strings(spec.argv)
    .strings(env);
  if (spec.user !== undefined) body.string(spec.user);
  if (spec.kept !== undefined) body.u32(bounded(spec.kept.stdout)).u32(bounded(spec.kept.stderr));
  const call = new GuestCall(channel, REQUEST.start, body.pieces);
  call.kept = spec.kept;
  if (spec.combined === true || spec.pty !== undefined) call.expectNoStderr();
  await call.started();
  return call;
}

function bounded(kept: number | undefined): number {
  return kept === undefined || kept > MAX_KEPT ? ALL : kept;
}
