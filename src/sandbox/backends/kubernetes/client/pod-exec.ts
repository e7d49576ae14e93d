import { Duplex } from "node:stream";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { KubeCall, KubeClient } from "./kube-client.js";
import { type ApiStatus, KubeError } from "./kube-error.js";
import { PODS, pathOf } from "./resources.js";
import { openWebSocket, type WebSocketConnection, type WebSocketEvents } from "./web-socket.js";

const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, status: 3, close: 255 } as const;
const V5 = "v5.channel.k8s.io";
const V4 = "v4.channel.k8s.io";
/** A message of more than 32 MiB ends the connection, without a word. Small ones let others through, too. */
const MAX_MESSAGE = 256 << 10;
const MAX_COMPLAINT = 4_096;
const MAX_STATUS = 64 << 10;

/** A program to run in a container. */
export interface PodCommand {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly argv: readonly string[];
}

/** Starts a program in a container. It is one request, and never made twice: the program may have started although no answer came. */
export async function execInPod(client: KubeClient, command: PodCommand, call: KubeCall = {}): Promise<PodStream> {
  const { namespace, pod, container, argv } = command;
  const path = pathOf(PODS, { namespace, name: pod, subresource: "exec" });
  const query = { container, command: argv, stdin: true, stdout: true, stderr: true, tty: false };
  const stream = new PodStream(`${argv[0]} in the pod ${pod}`);
  await stream.connect((events) => openWebSocket(client, { path, query }, [V5, V4], events, call));
  return stream;
}

/**
 * The streams of a program in a container: writes go to its stdin, reads come from its stdout. A reader that doesn't read slows the program down. The
 * start of stderr is kept as `complaint`.
 */
export class PodStream extends Duplex {
  /** Its exit code. Rejects if the connection ends before the cluster reports one: then nobody knows. */
  readonly exitCode: Promise<number>;
  readonly #what: string;
  #webSocket: WebSocketConnection | undefined;
  #complaint = "";
  #status = "";
  #settle!: { resolve(code: number): void; reject(error: Error): void };
  #waiting: (() => void) | undefined;

  constructor(what: string) {
    super({ allowHalfOpen: true });
    this.#what = what;
    this.exitCode = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.exitCode.catch(() => undefined); // not everybody asks
    this.on("error", () => undefined); // nor listens, and that must not end the process
  }

  /** What the program wrote to stderr first. */
  get complaint(): string {
    return this.#complaint.trim();
  }

  /** Whether `end()` closes the program's stdin. With an older server it doesn't: the program sees the end only when the connection is closed. */
  get canHalfClose(): boolean {
    return this.#webSocket?.protocol === V5;
  }

  async connect(open: (events: WebSocketEvents) => Promise<WebSocketConnection>): Promise<void> {
    this.#webSocket = await open({
      message: (payload) => this.#receive(payload),
      drained: () => this.#drained(),
      closed: (code, error) => this.#closed(code, error),
    });
  }

  ref(): void {
    this.#webSocket?.ref();
  }

  unref(): void {
    this.#webSocket?.unref();
  }

  override _read(): void {
    this.#webSocket?.resume();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    const webSocket = this.#webSocket;
    if (webSocket === undefined) throw new SandboxError("internal", "a stream is written before it is connected");
    let hasRoom = true;
    for (let at = 0; at < chunk.length; at += MAX_MESSAGE) {
      hasRoom = webSocket.send(STDIN, chunk.subarray(at, at + MAX_MESSAGE));
    }
    if (hasRoom) done();
    else this.#waiting = done;
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.canHalfClose) this.#webSocket?.send(Uint8Array.of(CHANNEL.close, CHANNEL.stdin));
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#webSocket?.destroy();
    this.#drained();
    done(error);
  }

  #drained(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }

  #receive(payload: Buffer): void {
    const bytes = payload.subarray(1);
    switch (payload[0]) {
      case CHANNEL.stdout:
        // The first message of each channel is empty.
        if (bytes.length > 0 && !this.push(bytes)) this.#webSocket?.pause();
        return;
      case CHANNEL.stderr:
        if (this.#complaint.length < MAX_COMPLAINT) this.#complaint += bytes.toString("utf8", 0, MAX_COMPLAINT);
        return;
      case CHANNEL.status:
        if (this.#status.length < MAX_STATUS) this.#status += bytes.toString("utf8");
        return;
      case CHANNEL.close:
        return;
      default:
        this.#fail(new KubeError("tampered", `The API server sends bytes on the unknown channel ${payload[0]}`));
    }
  }

  /** Only a status says that the program has ended. A connection may be closed in good order without one: that is a failure. */
  #closed(code: number | undefined, error?: Error): void {
    const outcome = parseOutcome(this.#status);
    if (typeof outcome === "number") {
      this.#settle.resolve(outcome);
      this.push(null);
      this.#drained();
      this.end();
      return;
    }
    this.#fail(this.#failure(outcome, code, error));
  }

  #fail(failure: SandboxError): void {
    this.#settle.reject(failure);
    this.destroy(failure);
  }

  #failure(said: string | undefined, code: number | undefined, cause: Error | undefined): SandboxError {
    if (said !== undefined) {
      const isMissing = /executable file not found|no such file or directory/.test(said);
      return new KubeError(isMissing ? "not_found" : "unavailable", `Kubernetes could not run ${this.#what}: ${said}`);
    }
    if (cause instanceof SandboxError) return cause;
    const how = code === undefined ? "" : ` (close code ${code})`;
    const why = cause?.message ?? `it was closed without a status${how}`;
    return new KubeError("unavailable", `The connection to ${this.#what} was lost: ${why}`, { cause });
  }
}

const STDIN = Uint8Array.of(CHANNEL.stdin);

/** The exit code; a text if the cluster reports that it could not run the program; undefined without a status. */
function parseOutcome(text: string): number | string | undefined {
  if (text === "") return undefined;
  let status: ApiStatus;
  try {
    status = JSON.parse(text) as ApiStatus;
  } catch {
    return "its status is not JSON";
  }
  if (status.status === "Success") return 0;
  const cause = status.details?.causes?.find(({ reason }) => reason === "ExitCode");
  const exitCode = Number(cause?.message ?? Number.NaN);
  if (status.reason === "NonZeroExitCode" && Number.isInteger(exitCode)) return exitCode;
  return typeof status.message === "string" ? status.message : "it failed without a message";
}
