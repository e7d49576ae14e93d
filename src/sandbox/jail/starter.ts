import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { getSystemErrorName } from "node:util";
import { ownerMark } from "../../machine/orphans.js";
import { guestBinary } from "../guest.js";
import { type HostProcess, hostProcess, type ProcessEvents, type ProcessSpec } from "./host-process.js";

/** How many processes one can start. Each takes a descriptor until then. */
const SLOTS = 32;
const FIRST_CHANNEL = 3;
/** How long it may take to end, in milliseconds. */
const PATIENCE = 5_000;
const ORDER_HEADER = 12;
const ORDERS = { start: 1, kill: 2 } as const;
const NOTICE_HEADER = 8;
const NOTICES = { started: 1, notStarted: 2, complaint: 3, report: 4, ended: 5 } as const;

/**
 * A small process that starts others for this one. Node forks to start a process, which copies the tables of all of its memory: about 1 ms in a small
 * program and 20 ms in one with 500 MB, in which nothing else happens.
 *
 * It ends with the last of what it has started, or with this process; what it has started ends with it.
 */
export class Starter {
  readonly #child: ChildProcess;
  /** None if this process has no room for so many descriptors. */
  readonly #streams: readonly (Socket | null)[];
  readonly #running = new Map<number, ProcessEvents>();
  readonly #gone: Promise<void>;
  #used = 0;
  #hasEnded = false;
  #received: Buffer = Buffer.alloc(0);

  constructor() {
    this.#child = spawn(guestBinary(), ["starter", String(SLOTS)], {
      stdio: ["pipe", "pipe", "ignore", ...Array<"pipe">(SLOTS).fill("pipe")],
      env: ownerMark(),
      cwd: "/",
      detached: true,
    });
    this.#child.unref();
    this.#streams = [...((this.#child.stdio as readonly (Socket | null)[] | undefined) ?? [])];
    for (const stream of this.#streams) {
      stream?.unref();
      // That it has ended is told below.
      stream?.on("error", () => undefined);
    }
    this.#child.stdout?.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#gone = new Promise((resolve) => {
      this.#child.once("exit", () => resolve(this.#end()));
      this.#child.once("error", (error) => resolve(this.#end(error.message)));
    });
  }

  /** Whether it can start one more process. */
  get hasRoom(): boolean {
    return this.#used + FIRST_CHANNEL < this.#streams.length && !this.#hasEnded;
  }

  start({ command, env, tellsEnd }: ProcessSpec): HostProcess {
    const slot = this.#used++;
    const { process, events } = hostProcess(this.#channel(slot), () => this.#send(ORDERS.kill, slot));
    this.#running.set(slot, events);
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    this.#send(ORDERS.start, slot, { command, variables, tellsEnd });
    return process;
  }

  #channel(slot: number): Socket {
    return this.#streams[FIRST_CHANNEL + slot] as Socket;
  }

  #send(kind: number, slot: number, start?: Pick<ProcessSpec, "command" | "tellsEnd"> & { variables: string[] }): void {
    const { command = [], variables = [], tellsEnd = false } = start ?? {};
    const strings = Buffer.from([...command, ...variables].map((text) => `${text}\0`).join(""));
    const header = Buffer.alloc(ORDER_HEADER);
    header.writeUInt32LE(strings.length, 0);
    header.set([kind, slot, Number(tellsEnd)], 4);
    header.writeUInt16LE(command.length, 8);
    header.writeUInt16LE(variables.length, 10);
    this.#child.stdin?.write(Buffer.concat([header, strings]));
  }

  #receive(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    while (this.#received.length >= NOTICE_HEADER) {
      const end = NOTICE_HEADER + this.#received.readUInt32LE(0);
      if (this.#received.length < end) return;
      const [kind = 0, slot = 0] = this.#received.subarray(4);
      this.#hear(kind, slot, this.#received.subarray(NOTICE_HEADER, end));
      this.#received = this.#received.subarray(end);
    }
  }

  #hear(kind: number, slot: number, body: Buffer): void {
    const events = this.#running.get(slot);
    if (kind === NOTICES.started) events?.started(body.readInt32LE(0));
    if (kind === NOTICES.complaint) events?.complained(body.toString("utf8"));
    if (kind === NOTICES.report) events?.reported(body.toString("utf8"));
    if (kind === NOTICES.notStarted) events?.complained(getSystemErrorName(-body.readInt32LE(0)));
    if (kind !== NOTICES.notStarted && kind !== NOTICES.ended) return;
    this.#running.delete(slot);
    if (this.#running.size > 0) events?.ended();
    else void this.#close().then(events?.ended);
  }

  async #close(): Promise<void> {
    this.#hasEnded = true;
    for (const stream of this.#streams) stream?.destroy();
    const late = setTimeout(() => this.#child.kill("SIGKILL"), PATIENCE);
    await this.#gone;
    clearTimeout(late);
  }

  #end(reason = "the process that starts sandboxes has ended"): void {
    this.#hasEnded = true;
    for (const [slot, events] of this.#running) {
      events.complained(reason);
      // What it has started is ended by the system, and with it the other end of the channel.
      const channel = this.#channel(slot);
      if (channel.closed) events.ended();
      else channel.once("close", events.ended);
    }
    this.#running.clear();
  }
}
