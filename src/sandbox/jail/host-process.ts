import type { Socket } from "node:net";

const MAX_COMPLAINT = 4096;

/** What to start. */
export interface ProcessSpec {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whether it reports on its descriptor 4 when everything in its jail has ended, as bubblewrap does. */
  readonly tellsEnd: boolean;
  /** Whether it ends with the process that has started it, whatever happens. */
  readonly endsWithParent: boolean;
}

/** A process of the host with a channel to it. None keeps this process alive. */
export interface HostProcess {
  /** Our end of its descriptor 3. */
  readonly channel: Socket;
  /** Never resolves if it could not be started. */
  readonly pid: Promise<number>;
  /** Resolves when it has ended, or could not be started. */
  readonly gone: Promise<void>;
  /** Resolves when it has reported that everything in its jail has ended; never, unless it was asked to. */
  readonly saysEnd: Promise<void>;
  /** What it has printed on its descriptor 2, or why it could not be started. */
  complaint(): string;
  kill(): void;
}

/** What whoever starts a process gets to know of it. */
export interface ProcessEvents {
  started(pid: number): void;
  complained(text: string): void;
  reported(text: string): void;
  ended(): void;
}

/** Makes a process of what is heard of it. */
export function hostProcess(channel: Socket, kill: () => void): { process: HostProcess; events: ProcessEvents } {
  let complaint = "";
  let report = "";
  let started!: ProcessEvents["started"];
  let ended!: () => void;
  let saidEnd!: () => void;
  const process: HostProcess = {
    channel,
    pid: new Promise((resolve) => {
      started = resolve;
    }),
    gone: new Promise((resolve) => {
      ended = resolve;
    }),
    saysEnd: new Promise((resolve) => {
      saidEnd = resolve;
    }),
    complaint: () => complaint.trim(),
    kill,
  };
  return {
    process,
    events: {
      started,
      complained(text) {
        if (complaint.length < MAX_COMPLAINT) complaint += text;
      },
      reported(text) {
        report = `${report}${text}`.slice(-MAX_COMPLAINT);
        if (report.includes('"exit-code"')) saidEnd();
      },
      ended,
    },
  };
}
