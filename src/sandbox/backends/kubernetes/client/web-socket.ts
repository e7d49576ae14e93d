import { createHash, randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { KubeCall, KubeClient } from "./kube-client.js";
import { KubeError } from "./kube-error.js";
import { encodeClientFrame, OPCODE, ServerFrameReader } from "./web-socket-frames.js";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** Servers send 32 KiB at most. */
const MAX_MESSAGE = 1 << 20;
const PING_EVERY = 5_000;
/** As kubectl does, the connection is given up when nothing at all came for this long. */
const LONGEST_SILENCE = 30_000;
/** How long a server has to close its side, once the connection is closed. */
const CLOSING = 2_000;

/** What happens on a WebSocket. */
export interface WebSocketEvents {
  message(payload: Buffer): void;
  /** The last event. The code is that of the server's close frame; undefined: the connection just ended. */
  closed(code: number | undefined, error?: Error): void;
  drained(): void;
}

/**
 * A WebSocket to the API server. Node 20 has none for clients. This one is a few hundred lines smaller than the package `ws`, and stops reading when
 * its user does.
 */
export class WebSocketConnection {
  readonly protocol: string;
  readonly #socket: Socket;
  readonly #events: WebSocketEvents;
  readonly #reader = new ServerFrameReader(MAX_MESSAGE);
  readonly #timer: NodeJS.Timeout;
  #heardAt = performance.now();
  #isPaused = false;
  #isClosing = false;
  #isOver = false;
  #code: number | undefined;

  constructor(socket: Socket, head: Buffer, protocol: string, events: WebSocketEvents) {
    this.protocol = protocol;
    this.#socket = socket;
    this.#events = events;
    socket.setNoDelay(true);
    socket.on("drain", () => events.drained());
    socket.on("error", (error) => this.#over(error));
    socket.on("close", () => this.#over());
    socket.on("end", () => socket.destroy());
    this.#timer = setInterval(() => this.#beat(), PING_EVERY);
    this.#timer.unref();
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    // What came with the answer waits until the constructor's caller knows this object.
    if (head.length > 0) socket.unshift(head);
  }

  /** Sends one message; false if the sender should wait for `drained`. */
  send(...pieces: readonly Uint8Array[]): boolean {
    if (this.#isClosing || this.#isOver) return true;
    return this.#socket.write(encodeClientFrame(OPCODE.binary, ...pieces));
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#heardAt = performance.now();
    this.#socket.resume();
  }

  /** Closes the connection in good order; what was sent before arrives. */
  close(): void {
    if (this.#isClosing || this.#isOver) return;
    this.#isClosing = true;
    this.#socket.write(encodeClientFrame(OPCODE.close, Buffer.from([0x03, 0xe8])));
    this.resume();
    setTimeout(() => this.#socket.destroy(), CLOSING).unref();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  ref(): void {
    this.#socket.ref();
  }

  unref(): void {
    this.#socket.unref();
  }

  #receive(chunk: Buffer): void {
    this.#heardAt = performance.now();
    try {
      for (const { opcode, payload } of this.#reader.push(chunk)) {
        if (opcode === OPCODE.ping) this.#socket.write(encodeClientFrame(OPCODE.pong, payload));
        else if (opcode === OPCODE.close) this.#closedByServer(payload);
        else if (opcode === OPCODE.binary && this.#code === undefined) this.#events.message(payload);
      }
    } catch (error) {
      this.#over(error as Error);
    }
  }

  #closedByServer(payload: Buffer): void {
    if (this.#code !== undefined) return;
    // 1005: it gives no code.
    this.#code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
    if (!this.#isClosing) this.#socket.write(encodeClientFrame(OPCODE.close, payload.subarray(0, 2)));
    this.#isClosing = true;
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), CLOSING).unref();
  }

  /** While its user reads nothing, neither does this: then silence means nothing. */
  #beat(): void {
    if (this.#isClosing) return;
    if (!this.#isPaused && performance.now() - this.#heardAt > LONGEST_SILENCE) {
      this.#over(new KubeError("unavailable", `The API server was silent for ${LONGEST_SILENCE} ms`));
      return;
    }
    if (this.#socket.writableLength === 0) this.#socket.write(encodeClientFrame(OPCODE.ping));
  }

  #over(error?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#socket.destroy();
    this.#events.closed(this.#code, error);
  }
}

/** Opens a WebSocket that speaks one of the protocols, best first. */
export async function openWebSocket(
  client: KubeClient,
  request: { path: string; query: Readonly<Record<string, string | boolean | readonly string[]>> },
  protocols: readonly string[],
  events: WebSocketEvents,
  call: KubeCall = {},
): Promise<WebSocketConnection> {
  const key = randomBytes(16).toString("base64");
  const headers = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": key,
    "Sec-WebSocket-Protocol": protocols.join(", "),
  };
  const { answer, socket, head } = await client.upgrade({ ...request, headers }, call);
  const expected = createHash("sha1")
    .update(key + MAGIC)
    .digest("base64");
  const protocol = answer.headers["sec-websocket-protocol"];
  if (answer.headers["sec-websocket-accept"] !== expected || protocol === undefined || !protocols.includes(protocol)) {
    socket.destroy();
    const hint = "check what is between here and the API server";
    throw new KubeError("unavailable", "The API server answers an upgrade that is not a WebSocket we asked for", {
      hint,
    });
  }
  return new WebSocketConnection(socket, head, protocol, events);
}
