import type { Size } from "./sizes.js";

/** What an answer is replaced by: a status, or a connection that breaks before or after the work was done. */
export type FaultAction =
  | { status: number; body?: unknown; headers?: Record<string, string> }
  | "reset"
  | "reset-after"
  | { delay: number };

/** A fault that is waiting for its request. */
export interface Fault {
  /** Compared with `METHOD /path?query`. */
  readonly match: RegExp;
  readonly action: FaultAction;
  /** How often it strikes. Default 1. */
  times?: number;
}

/** The service's own bad habits; each can be switched, and a test says which it means. */
export interface Habits {
  /** How long a new sandbox is `creating`. 0: it is `started` in the first answer. */
  createMs: number;
  /** How long an image or a snapshot is built. 0: it is there in the first answer. */
  buildMs: number;
  /** A build whose instructions have this fails. */
  failingBuild: RegExp | undefined;
  /** The most that one sandbox of the organisation may have. */
  largest: Size;
  /** How long a change of a state takes: a start, a stop, a snapshot. Meanwhile no other begins. */
  transitMs: number;
  /** How long a minute of the service is: an idle sandbox stops after so many of them. */
  minuteMs: number;
  /** How long a deleted one is `destroying`. */
  deleteMs: number;
  /** How long a log is followed after its command has ended. The service takes a second. */
  lingerMs: number;
  /** The most that one frame of a followed log has, in bytes. */
  frameBytes: number;
  /** So many bytes of a log are followed before the socket closes as if all were said. */
  followCutAfter: number | undefined;
  /** Whether that close says 1000 or nothing at all. */
  followCutRudely: boolean;
  /** Nobody can follow a log: the upgrade is refused. */
  refuseFollow: boolean;
  /** Input is echoed into the log although that was not wanted. */
  echoInput: boolean;
  /** The organisation may not choose its own network rules. */
  fixedNetwork: boolean;
  /** Rules of a creation are passed over, as a service that does not know them does. */
  ignoresNetwork: boolean;
  /** Commands are read into the shell of their session, so that `exit` is the end of it. */
  sourcesCommands: boolean;
  /** Logs get the line end that a command did not write, and lose what is not text. */
  changesOutput: boolean;
  /** A checkout that is refused because of changes has moved HEAD all the same. */
  movesHeadWhenDirty: boolean;
  /** A stopped sandbox answers as if the caller had been wrong. */
  blamesTheCaller: boolean;
  /** Commits without a change are refused whatever was asked for, as older daemons do. */
  refuseEmptyCommits: boolean;
  faults: Fault[];
}

/** A service on a good day, only faster. */
export function createHabits(): Habits {
  return {
    createMs: 0,
    buildMs: 0,
    failingBuild: undefined,
    largest: { cpu: 8, memory: 16, disk: 40 },
    transitMs: 5,
    minuteMs: 60_000,
    deleteMs: 5,
    lingerMs: 20,
    frameBytes: 1_024,
    followCutAfter: undefined,
    followCutRudely: false,
    refuseFollow: false,
    echoInput: false,
    fixedNetwork: false,
    ignoresNetwork: false,
    sourcesCommands: true,
    changesOutput: true,
    movesHeadWhenDirty: true,
    blamesTheCaller: true,
    refuseEmptyCommits: true,
    faults: [],
  };
}

/** The fault that strikes this request, if one does. */
export function takeFault(habits: Habits, request: string): FaultAction | undefined {
  const index = habits.faults.findIndex(({ match }) => match.test(request));
  const fault = habits.faults[index];
  if (fault === undefined) return undefined;
  fault.times = (fault.times ?? 1) - 1;
  if (fault.times <= 0) habits.faults.splice(index, 1);
  return fault.action;
}
