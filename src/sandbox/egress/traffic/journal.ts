import { closeSync, constants, fstatSync, openSync, readSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { NetworkEvent } from "../../../../contracts/types.js";
import type { TrafficLog } from "./traffic.js";

const NAME = "network.jsonl";
const OLDER = "network-older.jsonl";
/** Bytes of each of the two files. */
const MAX_BYTES = 1 << 20;

/**
 * Notes what the network of a sandbox does next to its record, for `glovebox net`. Made with the first event, so a sandbox without connections has
 * none. The newest events stay: two files of 1 MiB at most. A line that can't be written is lost.
 */
export function createJournal(directory: string): TrafficLog {
  let file: number | undefined;
  let size = 0;
  let isClosed = false;
  const open = (): number => {
    const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
    const opened = openSync(join(directory, NAME), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600);
    size = fstatSync(opened).size;
    return opened;
  };
  const close = (): void => {
    if (file !== undefined) closeSync(file);
    file = undefined;
  };
  return {
    write(event) {
      if (isClosed) return;
      const line = Buffer.from(`${JSON.stringify(event)}\n`);
      try {
        file ??= open();
        if (size + line.length > MAX_BYTES) {
          close();
          renameSync(join(directory, NAME), join(directory, OLDER));
          file = open();
        }
        size += writeSync(file, line);
      } catch {
        // The directory is gone with the sandbox, or the disk is full.
      }
    },
    close() {
      isClosed = true;
      close();
    },
  };
}

interface OpenFile {
  readonly descriptor: number;
  readonly inode: bigint;
  at: number;
  /** The start of a line that is not complete yet. */
  rest: string;
}

/** Reads the journal of a sandbox, and what is added to it since. */
export class JournalReader {
  readonly #directory: string;
  #file: OpenFile | undefined;
  #hasOlder = false;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The events since the last call. Lines that are none are left out. */
  read(): NetworkEvent[] {
    const events: NetworkEvent[] = [];
    if (!this.#hasOlder) events.push(...this.#readAll(OLDER));
    this.#hasOlder = true;
    if (this.#file !== undefined) events.push(...this.#readOn());
    const current = this.#open(NAME);
    if (current === undefined) return events;
    if (current.inode === this.#file?.inode) closeSync(current.descriptor);
    else {
      this.close();
      this.#file = current;
      events.push(...this.#readOn());
    }
    return events;
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file.descriptor);
    this.#file = undefined;
  }

  #open(name: string): OpenFile | undefined {
    try {
      const descriptor = openSync(join(this.#directory, name), constants.O_RDONLY | constants.O_NOFOLLOW);
      return { descriptor, inode: fstatSync(descriptor, { bigint: true }).ino, at: 0, rest: "" };
    } catch {
      return undefined;
    }
  }

  #readAll(name: string): NetworkEvent[] {
    this.#file = this.#open(name);
    const events = this.#file === undefined ? [] : this.#readOn();
    this.close();
    return events;
  }

  #readOn(): NetworkEvent[] {
    const file = this.#file;
    if (file === undefined) return [];
    const buffer = Buffer.alloc(64 << 10);
    const events: NetworkEvent[] = [];
    for (;;) {
      const length = readSync(file.descriptor, buffer, 0, buffer.length, file.at);
      if (length === 0) return events;
      file.at += length;
      // Only ASCII is written: names and methods have nothing else.
      const lines = (file.rest + buffer.toString("latin1", 0, length)).split("\n");
      file.rest = lines.pop() ?? "";
      events.push(...lines.flatMap(parseEvent));
    }
  }
}

function parseEvent(line: string): NetworkEvent[] {
  try {
    const event = JSON.parse(line) as Partial<NetworkEvent> | null;
    return typeof event?.event === "string" && typeof event.host === "string" ? [event as NetworkEvent] : [];
  } catch {
    return [];
  }
}
