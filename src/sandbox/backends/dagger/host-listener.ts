import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Client, Service } from "@dagger.io/dagger";

/** Longest first line of an honest caller. */
const MAX_LINE = 256;
/** How long a caller may take to send it, in milliseconds. */
const PATIENCE = 10_000;
/** How many callers may be unidentified at the same time: commands can call as often as they like. */
const MAX_STRANGERS = 256;

/**
 * Where guests call: a port on this machine's loopback, which the engine makes reachable for containers.
 *
 * Others may call as well, such as a port check. Only a caller that knows the number of an expected step gets past its first line, and each number
 * is accepted once.
 */
export class HostListener {
  readonly port: number;
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
    // A sandbox that is never torn down must not keep the process alive.
    server.unref();
    return new HostListener(server, client);
  }

  /** Resolves with the connection of a step's guest; rejects if the signal is aborted first. */
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
      const step = line.toString("latin1", 0, Math.max(end, 0));
      const take = this.#awaited.get(step);
      this.#awaited.delete(step);
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
