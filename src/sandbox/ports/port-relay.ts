import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import type { DriverConnection } from "../../../contracts/driver.js";
import { SandboxError, type SandboxErrorCode } from "../../../contracts/errors.js";
import { join } from "./join.js";
import { type LoopbackListener, listenOnLoopback } from "./loopback-listener.js";
import { type UsedSocketOwners, useSocketOwners } from "./socket-owners.js";

/** Connections of one sandbox at the same time. The guest has room for as many, and for commands beside them. */
const MAX_CONNECTIONS = 256;
/** How many more may wait for one of them to end; the next are closed. */
const MAX_WAITING = 256;
/** Why a connection inside could not be made because there is no sandbox any more. */
const GONE: readonly SandboxErrorCode[] = ["backend_lost", "tampered", "closed"];

/** How a relay reaches the servers, and what it reports. */
export interface RelayOptions {
  connect(port: number, signal: AbortSignal): Promise<DriverConnection>;
  warn(message: string): void;
}

/** Makes ports of a sandbox reachable from this machine, for this user only: each connection becomes one inside. */
export class PortRelay {
  readonly #options: RelayOptions;
  readonly #listeners = new Map<number, Promise<LoopbackListener>>();
  readonly #sockets = new Set<Socket>();
  readonly #waiting: (() => void)[] = [];
  readonly #ending = new AbortController();
  readonly #strangers = new Set<number>();
  #owners: UsedSocketOwners | undefined;
  #running = 0;
  #closing: Promise<void> | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    // Each connection that is being made listens to it.
    setMaxListeners(0, this.#ending.signal);
  }

  /** The URL of a port, which is listened for from now on. */
  async url(port: number): Promise<string> {
    this.#ending.signal.throwIfAborted();
    let listening = this.#listeners.get(port);
    if (listening === undefined) {
      if (process.platform === "linux") this.#owners ??= useSocketOwners();
      listening = listenOnLoopback((socket) => void this.#take(socket, port));
      this.#listeners.set(port, listening);
      listening.catch(() => this.#listeners.delete(port));
    }
    const listener = await listening;
    if (this.#ending.signal.aborted) {
      listener.close();
      throw this.#ending.signal.reason;
    }
    return `http://127.0.0.1:${listener.port}`;
  }

  /** Closes every listener and every connection, at once. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#ending.abort(new SandboxError("closed", "the sandbox is closed"));
    for (const listener of await Promise.allSettled(this.#listeners.values())) {
      if (listener.status === "fulfilled") listener.value.close();
    }
    for (const socket of this.#sockets) socket.resetAndDestroy();
    for (const proceed of this.#waiting.splice(0)) proceed();
    await this.#owners?.release();
  }

  /** Serves one connection. Never throws: a failure ends that connection and nothing else. */
  async #take(socket: Socket, port: number): Promise<void> {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => undefined);
    if (!(await this.#isOwn(socket, port)) || !(await this.#hasRoom())) {
      socket.resetAndDestroy();
      return;
    }
    try {
      const inside = await this.#options.connect(port, this.#ending.signal);
      if (socket.destroyed) inside.destroy();
      else await join(socket, inside);
    } catch (error) {
      // Nobody listens inside. A client without a relay would be refused.
      socket.resetAndDestroy();
      if (error instanceof SandboxError && GONE.includes(error.code)) void this.close();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  /** Whether a process of this user has made the connection: others on this machine have no business in the sandbox. */
  async #isOwn(socket: Socket, port: number): Promise<boolean> {
    if (this.#owners === undefined) return true;
    const uid = await this.#owners.ownerOf(socket);
    if (uid === process.getuid?.()) return true;
    if (uid !== undefined && !this.#strangers.has(uid)) {
      this.#strangers.add(uid);
      this.#options.warn(
        `A connection to port ${port} of user ${uid} was closed: only user ${process.getuid?.()}, who opened the sandbox, can use it`,
      );
    }
    return false;
  }

  /** Waits until there are fewer connections than there can be; false if too many wait, or at the end. */
  async #hasRoom(): Promise<boolean> {
    if (this.#ending.signal.aborted) return false;
    if (this.#running < MAX_CONNECTIONS) {
      this.#running += 1;
      return true;
    }
    if (this.#waiting.length >= MAX_WAITING) return false;
    // It gets the place of the connection that ends.
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return !this.#ending.signal.aborted;
  }
}
