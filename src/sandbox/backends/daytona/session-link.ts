import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import { tampered, unsqueeze } from "../../guest.js";
import type { RemoteSandbox } from "./client.js";
import { diagnose, lost, persist, statusOf } from "./failure.js";

/** How long to retry reading a log that can't be read, in milliseconds. */
const PATIENCE = 30_000;
const FIRST_PAUSE = 50;
const LONGEST_PAUSE = 500;
/** How long the service may take to say whether a session still exists, in milliseconds. */
const PROBE = 10_000;
/** How long a command may be silent before it is checked, in milliseconds: at first, and at most. */
const SILENCE = 2_500;
const LONGEST_SILENCE = 5_000;
const TICK = 500;
const SHORT_LOG = 1 << 20;
const MAX_COMPLAINT = 2_048;
/** Bytes of one line, and of one request. */
const LINE = 48 << 10;
const REQUEST = 1 << 20;

/** The command of a session, as the service identifies it. */
export interface SessionCommand {
  readonly remote: RemoteSandbox;
  readonly sessionId: string;
  readonly commandId: string;
}

/**
 * A byte stream to the guest over a session: writes become numbered lines of input, reads are numbered lines of the command's log.
 *
 * The service stores the log, so a socket that closes early or abruptly loses nothing: it is reopened, or the log is requested, and known lines are
 * skipped. Input whose fate is unknown is sent again; the guest reads each line once. The end of the log only counts if the guest itself announced
 * it.
 */
export class SessionLink extends Duplex {
  /** How much of a stream may be in transit: an answer takes a round trip to the service. */
  readonly window: number = 4 << 20;
  /** How many bytes have come; they stay on the disk of the sandbox until the session is deleted. */
  received = 0;
  /** What came before the first line of the guest. */
  complaint = "";
  /** What the shell reported about the sandbox: lines `@name value` before those of the guest. */
  readonly facts: Map<string, string> = new Map();
  readonly #command: SessionCommand;
  #sent = 0;
  #next = 0;
  #over = false;
  #pulse: NodeJS.Timeout | undefined;
  #quietSince = 0;
  #silence = SILENCE;
  #probing = false;
  #sending = false;

  constructor(command: SessionCommand) {
    super({ writableHighWaterMark: REQUEST, allowHalfOpen: false });
    this.#command = command;
    void this.#listen();
  }

  /** A call is running: if it is silent because the guest is gone, that shows within a few seconds. */
  ref(): void {
    if (this.#pulse !== undefined) return;
    this.#hear();
    this.#pulse = setInterval(() => void this.#checkPulse(), TICK);
  }

  /** Nothing is awaited. The SDK's socket keeps the process alive; it is closed with the session. */
  unref(): void {
    clearInterval(this.#pulse);
    this.#pulse = undefined;
  }

  async #checkPulse(): Promise<void> {
    if (this.#over || performance.now() - this.#quietSince < this.#silence) return;
    this.#quietSince = performance.now();
    this.#silence = Math.min(this.#silence * 2, LONGEST_SILENCE);
    // A short log is read again, in case a line was lost in transit.
    const isShort = this.received < SHORT_LOG;
    await this.#ask(() => (isShort ? this.#catchUp() : this.#state()));
  }

  #hear(): void {
    this.#quietSince = performance.now();
    this.#silence = SILENCE;
  }

  /** One query at a time; a final answer ends the link. */
  async #ask(question: () => Promise<unknown>): Promise<void> {
    if (this.#probing) return;
    this.#probing = true;
    const failure = await question();
    this.#probing = false;
    if (failure instanceof SandboxError && !this.#over) this.destroy(failure);
  }

  /** Asks the guest to end everything, including itself. Resolves once the request was accepted. */
  async quit(): Promise<void> {
    const { remote, sessionId, commandId } = this.#command;
    // The first line feed ends a line that is still being written.
    await persist(() => remote.process.sendSessionCommandInput(sessionId, commandId, "\nQ\n"));
  }

  override _read(): void {}

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk))).then(() => done(), done);
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#send(chunk).then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#over = true;
    this.unref();
    done(error);
  }

  async #send(bytes: Buffer): Promise<void> {
    const { remote, sessionId, commandId } = this.#command;
    for (let from = 0; from < bytes.length; from += REQUEST) {
      // The first line feed ends what a broken request may have left open.
      let text = "\n";
      for (let at = from; at < Math.min(from + REQUEST, bytes.length); at += LINE) {
        const part = bytes.subarray(at, Math.min(at + LINE, from + REQUEST));
        text += `G${this.#sent++} ${part.length} ${part.toString("base64")}\n`;
      }
      try {
        this.#sending = true;
        await persist(() => remote.process.sendSessionCommandInput(sessionId, commandId, text));
      } catch (error) {
        throw await diagnose(remote, error, "a request to the guest");
      } finally {
        this.#sending = false;
      }
    }
  }

  async #listen(): Promise<void> {
    let silentSince: number | undefined;
    for (let pause = FIRST_PAUSE; !this.#over; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      const before = this.#next;
      const failure = (await this.#follow()) ?? (this.#over ? undefined : await this.#catchUp());
      if (this.#over) return;
      if (failure instanceof SandboxError) {
        this.destroy(failure);
        return;
      }
      if (failure === undefined || this.#next > before) silentSince = undefined;
      else silentSince ??= performance.now();
      if (silentSince !== undefined && performance.now() - silentSince > PATIENCE) {
        this.destroy(lost("the log of the guest cannot be read any more", failure));
        return;
      }
      if (this.#next > before) pause = FIRST_PAUSE;
      else await sleep(pause);
    }
  }

  /** Reads the log as it grows. Returns a failure only if there was one; the end of the log means nothing. */
  async #follow(): Promise<unknown> {
    const { remote, sessionId, commandId } = this.#command;
    const lines = this.#lines();
    try {
      await remote.process.getSessionCommandLogs(sessionId, commandId, lines, (text) => this.#complain(text));
      return undefined;
    } catch (error) {
      return this.#over ? undefined : ((await this.#catchUp()) ?? (isAnswer(error) ? undefined : error));
    }
  }

  /** Reads the whole log at once. Returns an error, final or transient. */
  async #catchUp(): Promise<unknown> {
    const { remote, sessionId, commandId } = this.#command;
    return await this.#state(async () => {
      const logs = await remote.process.getSessionCommandLogs(sessionId, commandId);
      this.#lines()(logs.stdout ?? "");
      this.#complain(logs.stderr ?? "");
    });
  }

  /** Checks whether the command still exists, and then runs `read`. */
  async #state(read?: () => Promise<void>): Promise<unknown> {
    const { remote, sessionId, commandId } = this.#command;
    try {
      const { exitCode } = await remote.process.getSessionCommand(sessionId, commandId);
      await read?.();
      if (this.#over) return undefined;
      if (exitCode === undefined || exitCode === null) return await this.#probe();
      return lost(`the guest ended with ${exitCode}${this.complaint === "" ? "" : `: ${this.complaint.trim()}`}`);
    } catch (error) {
      if (this.#over) return undefined;
      const found = await diagnose(remote, error, "the log of the guest");
      const isGone = found.code === "backend_lost" || [404, 410].includes(statusOf(error) ?? 0);
      return isGone ? lost(`the guest is gone: ${found.message}`, error) : error;
    }
  }

  /**
   * A dead shell never writes an exit code; an empty line of input shows whether it is alive. Input that is on its way shows it too, and an empty
   * line could get into the middle of it: two requests at once mix once the pipe is full.
   */
  async #probe(): Promise<unknown> {
    if (this.#sending) return undefined;
    const { remote, sessionId, commandId } = this.#command;
    const late = AbortSignal.timeout(PROBE);
    const silence = new Promise<void>((resolve) => late.addEventListener("abort", () => resolve(), { once: true }));
    await Promise.race([remote.process.sendSessionCommandInput(sessionId, commandId, "\n"), silence]);
    return late.aborted ? new Error("the session does not take input") : undefined;
  }

  /** Joins pieces of text into lines. Each socket starts anew. */
  #lines(): (text: string) => void {
    // A line of 64 KiB comes in many pieces; they are joined once.
    let open: string[] = [];
    return (text) => {
      this.received += text.length;
      const [first = "", ...lines] = text.split("\n");
      open.push(first);
      for (const next of lines) {
        this.#take(open.join(""));
        open = [next];
      }
    };
  }

  /** Lines that don't come from the guest may be an echo of ours, or the shell's. */
  #take(marked: string): void {
    if (this.#over) return;
    const line = withoutMarks(marked);
    if (line === "x") {
      this.#over = true;
      this.push(null);
      return;
    }
    const [, number, size, text] = /^[gz](\d+) (?:(\d+) )?([A-Za-z0-9+/=]*)$/.exec(line) ?? [];
    if (number === undefined || text === undefined) {
      const [, name, value] = /^@(\w+) (.*)$/.exec(line) ?? [];
      if (name !== undefined && value !== undefined && this.#next === 0) this.facts.set(name, value);
      else if (!line.startsWith("G")) this.#complain(`${line}\n`);
    } else if (Number(number) === this.#next) {
      this.#next += 1;
      this.#hear();
      const bytes = Buffer.from(text, "base64");
      const whole = size === undefined ? bytes : unsqueeze(bytes, Number(size));
      if (whole === undefined) this.destroy(tampered("a line that cannot be read"));
      else this.push(whole);
    } else if (Number(number) > this.#next) {
      // A line is missing: the log has it.
      void this.#ask(() => this.#catchUp());
    }
  }

  #complain(text: string): void {
    if (this.complaint.length < MAX_COMPLAINT && this.#next === 0) this.complaint += text;
  }
}

/** A refused handshake is an event of the socket, not an error; the log is then requested instead. */
function isAnswer(error: unknown): boolean {
  return !(error instanceof Error);
}

/** If a chunk ends right after the mark of a line, the SDK treats that mark as text. */
function withoutMarks(line: string): string {
  let start = 0;
  while (line.charCodeAt(start) === 1 || line.charCodeAt(start) === 2) start++;
  return line.slice(start);
}
