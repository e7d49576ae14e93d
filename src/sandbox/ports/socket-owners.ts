import { type ChildProcessByStdio, spawn } from "node:child_process";
import { isIPv6, type Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { ownerMark } from "../../machine/orphans.js";
import { guestBinary } from "../guest.js";

/** What the program answers if no open socket is at the other end any more. */
const NOBODY = 0xffff_ffff;
const ANSWER_BYTES = 4;

type Program = ChildProcessByStdio<Writable, Readable, null>;

/** A use of the program that all relays of this process share. */
export interface UsedSocketOwners {
  /** The user id; undefined if the client has closed its socket, or if it can't be known. */
  ownerOf(socket: Socket): Promise<number | undefined>;
  /** Ends the program after its last use, and waits for its end. */
  release(): Promise<void>;
}

let shared: SocketOwners | undefined;
let users = 0;

/** Starts the program that finds out whose socket is at the other end of a connection, or shares the one that runs. */
export function useSocketOwners(): UsedSocketOwners {
  const owners = shared ?? new SocketOwners();
  shared = owners;
  owners.start();
  users += 1;
  return {
    ownerOf: (socket) => owners.ownerOf(socket),
    async release() {
      users -= 1;
      if (users > 0) return;
      shared = undefined;
      await owners.close();
    },
  };
}

/**
 * Finds out whose socket is at the other end of a connection from this machine. A program of ours asks the kernel about that one socket: Node
 * can't, and to read the list of all sockets takes ten milliseconds. It ends with this process, and when it is closed.
 */
class SocketOwners {
  #program: Program | undefined;
  #waiting: ((uid: number | undefined) => void)[] = [];
  #received: Buffer = Buffer.alloc(0);
  #isClosed = false;

  /** So that the first connection does not have to wait for it. */
  start(): void {
    this.#running();
  }

  async ownerOf(socket: Socket): Promise<number | undefined> {
    const request = toRequest(socket);
    if (request === undefined || this.#isClosed) return undefined;
    return await new Promise((resolve) => {
      const { stdin } = this.#running();
      this.#waiting.push(resolve);
      stdin.write(request);
    });
  }

  async close(): Promise<void> {
    const program = this.#program;
    this.#isClosed = true;
    this.#program = undefined;
    this.#fail();
    if (program === undefined) return;
    const ended = new Promise((resolve) => program.once("exit", resolve).once("error", resolve));
    program.ref();
    program.stdin.end();
    await ended;
  }

  #running(): Program {
    if (this.#program !== undefined) return this.#program;
    // In a group of its own: a Ctrl-C on the terminal is for us.
    const program = spawn(guestBinary(), ["socket-owner"], {
      stdio: ["pipe", "pipe", "ignore"],
      env: ownerMark(),
      cwd: "/",
      detached: true,
    });
    const gone = (): void => {
      if (this.#program !== program) return;
      this.#program = undefined;
      this.#fail();
    };
    program.on("error", gone).on("exit", gone);
    program.stdin.on("error", gone);
    program.stdout.on("error", gone).on("data", (chunk: Buffer) => this.#receive(chunk));
    // A client that waits for its answer keeps the process alive, nothing else does.
    program.unref();
    // On Bun a child's stdin has no unref.
    for (const stream of [program.stdin, program.stdout] as unknown as Partial<Socket>[]) stream.unref?.();
    this.#program = program;
    return program;
  }

  #receive(chunk: Buffer): void {
    const bytes = Buffer.concat([this.#received, chunk]);
    let at = 0;
    for (; at + ANSWER_BYTES <= bytes.length; at += ANSWER_BYTES) {
      const uid = bytes.readUInt32LE(at);
      this.#waiting.shift()?.(uid === NOBODY ? undefined : uid);
    }
    this.#received = bytes.subarray(at);
  }

  #fail(): void {
    this.#received = Buffer.alloc(0);
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }
}

/** A request of the program (`guest/process/socket-owner.c`): the client's end of the connection comes first. */
function toRequest({ remoteAddress, remotePort, localAddress, localPort }: Socket): Buffer | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  if (localAddress === undefined || localPort === undefined) return undefined;
  const request = Buffer.alloc(40);
  request[0] = isIPv6(remoteAddress) ? 1 : 0;
  request.writeUInt16BE(remotePort, 4);
  request.writeUInt16BE(localPort, 6);
  addressBytes(remoteAddress).copy(request, 8);
  addressBytes(localAddress).copy(request, 24);
  return request;
}

/** Only the addresses of a loopback come here: 127.x.x.x, and ::1. */
function addressBytes(address: string): Buffer {
  if (isIPv6(address)) return Buffer.from([...new Array<number>(15).fill(0), 1]);
  return Buffer.from(address.split(".").map(Number));
}
