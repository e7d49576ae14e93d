import type { NetworkEvent } from "../../../../contracts/types.js";
import { isoTime } from "../../../util/iso-time.js";
import { type BlockedHost, Refusal } from "../refusal.js";

/** Where the events of a sandbox's network are written. */
export interface TrafficLog {
  /** Writes a line. Throws if it can't, unless losing lines is all right. */
  write(event: NetworkEvent): void;
  close(): void;
}

/** What a connection was let through to. */
export interface LetThrough {
  readonly host: string;
  readonly port: number;
  /** The entry of `network.allow`, or `onBlocked`. */
  readonly rule: string;
  readonly method?: string;
}

/** Writes down what passes and what does not. What can't be written to the audit log does not pass. */
export class Traffic {
  readonly #sandbox: string;
  readonly #journal: TrafficLog | undefined;
  readonly #audit: TrafficLog | undefined;
  #connections = 0;

  constructor(sandbox: string, logs: { journal?: TrafficLog | undefined; audit?: TrafficLog | undefined }) {
    this.#sandbox = sandbox;
    this.#journal = logs.journal;
    this.#audit = logs.audit;
  }

  /** A connection that may pass. Throws a `Refusal` if it can't be written down. `bytes`: what has moved by now, seen from the program. */
  open(passage: LetThrough, bytes: () => { sent: number; received: number }): Passing {
    const connection = ++this.#connections;
    const write = (event: Partial<NetworkEvent> & Pick<NetworkEvent, "event">): void =>
      this.#write({ connection, decision: "allowed", ...passage, ...event });
    const passing = new Passing(passage, write, bytes);
    passing.begin();
    return passing;
  }

  /** Something that did not pass. */
  blocked({ host, port, reason }: BlockedHost, method?: string): void {
    const about = { host, ...(port !== undefined && { port }), ...(method !== undefined && { method }) };
    try {
      this.#write({ event: "blocked", connection: ++this.#connections, decision: "denied", rule: reason, ...about });
    } catch {
      // It does not pass in any case, and the log has said that it can't be written.
    }
  }

  close(): void {
    this.#journal?.close();
    this.#audit?.close();
  }

  #write(event: Omit<NetworkEvent, "version" | "time" | "sandbox">): void {
    const line: NetworkEvent = { version: 1, time: isoTime(), sandbox: this.#sandbox, ...event };
    this.#audit?.write(line);
    this.#journal?.write(line);
  }
}

/** A connection that passes, and the requests in it that the proxy can read. */
export class Passing {
  readonly #passage: LetThrough;
  readonly #write: (event: Partial<NetworkEvent> & Pick<NetworkEvent, "event">) => void;
  readonly #bytes: () => { sent: number; received: number };
  readonly #secrets = new Set<string>();
  readonly #start = performance.now();

  constructor(
    passage: LetThrough,
    write: (event: Partial<NetworkEvent> & Pick<NetworkEvent, "event">) => void,
    bytes: () => { sent: number; received: number },
  ) {
    this.#passage = passage;
    this.#write = write;
    this.#bytes = bytes;
  }

  /** Writes that it starts. */
  begin(): void {
    this.#writeOrRefuse({ event: "open" });
  }

  /** Notes that the value of a secret was put into a request of this connection. Only its name is written. */
  useSecret(name: string): void {
    this.#secrets.add(name);
  }

  /** Writes down a request, before it is sent. Throws a `Refusal` if that fails. */
  request(method: string): void {
    this.#writeOrRefuse({ event: "request", method, ...this.#used() });
  }

  /** Writes that it is over. */
  close(): void {
    const durationMs = Math.round(performance.now() - this.#start);
    try {
      this.#write({ event: "close", ...this.#bytes(), durationMs, ...this.#used() });
    } catch {
      // The log writes it with the next line.
    }
  }

  #used(): { secrets?: string[] } {
    return this.#secrets.size === 0 ? {} : { secrets: [...this.#secrets].sort() };
  }

  #writeOrRefuse(event: Partial<NetworkEvent> & Pick<NetworkEvent, "event">): void {
    try {
      this.#write(event);
    } catch {
      const { host, port } = this.#passage;
      throw new Refusal(503, `the audit log of this sandbox can't be written, so nothing passes to ${host}:${port}`);
    }
  }
}
