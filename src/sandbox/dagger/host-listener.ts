import { randomBytes } from "node:crypto";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Client, Service } from "@dagger.io/dagger";

/** Longest first line of an honest caller, and how long it may take to say it. */
const MAX_LINE = 256;
const PATIENCE = 10_000;
/** So many may be about to say it at one time: who is inside can call as often as it likes. */
const MAX_STRANGERS = 256;

/**
 * Where agents call: a port of this machine's loopback, which the engine makes reachable for containers.
 *
 * Others may call as well, such as a look whether somebody listens. Only who knows the token and a step that is awaited
 * gets further than its first line.
 */
export class HostListener {
  readonly port: number;
  /** Secret; known to the containers of this process alone. */
  readonly token: string = randomBytes(24).toString("hex");
  /** What the engine calls the token. Never used again: an engine goes by the name, whatever the value is by then. */
  readonly tokenName: string = `glovebox-${randomBytes(8).toString("hex")}`;
  /** The port as a service that a container can be bound to. */
  readonly service: Service;
  readonly #server: Server;
  #strangers = 0;
  readonly #awaited = new Map<string, (socket: Socket) => void>();

  private constructor(server: Server, client: Client) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    this.service = client.host().service([{ backend: this.port, frontend: this.port }]);
    server.on("connection", (socket) => this.#receive(socket));
  }

  static async open(client: Client): Promise<HostListener> {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.on("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    // A sandbox that nobody tears down must not keep the process alive.
    server.unref();
    return new HostListener(server, client);
  }

  /** Resolves with the connection of a step's agent; rejects when the signal comes first. */
  expect(step: string, signal: AbortSignal): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#awaited.delete(step);
        reject(signal.reason);
      };
      if (signal.aborted) {
        giveUp();
        return;
      }
      signal.addEventListener("abort", giveUp, { once: true });
      this.#awaited.set(step, (socket) => {
        signal.removeEventListener("abort", giveUp);
        resolve(socket);
      });
    });
  }

  close(): void {
    this.#server.close();
  }

  #receive(socket: Socket): void {
    if (this.#strangers >= MAX_STRANGERS) {
      socket.destroy();
      return;
    }
    this.#strangers += 1;
    let isKnown = false;
    const meet = (): void => {
      if (!isKnown) this.#strangers -= 1;
      isKnown = true;
    };
    let line = Buffer.alloc(0);
    const timer = setTimeout(() => socket.destroy(), PATIENCE);
    const onData = (chunk: Buffer): void => {
      line = Buffer.concat([line, chunk]);
      const end = line.indexOf("\n");
      if (end < 0 && line.length <= MAX_LINE) return;
      socket.off("data", onData).pause();
      clearTimeout(timer);
      meet();
      const [token, step = ""] = line.toString("latin1", 0, end).split(" ");
      const take = token === this.token ? this.#awaited.get(step) : undefined;
      this.#awaited.delete(take === undefined ? "" : step);
      if (take === undefined) {
        socket.destroy();
        return;
      }
      socket.setNoDelay(true);
      if (end + 1 < line.length) socket.unshift(line.subarray(end + 1));
      take(socket);
    };
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(timer);
      meet();
    });
    socket.on("data", onData);
  }
}
