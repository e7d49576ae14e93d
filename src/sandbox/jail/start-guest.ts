import { lstatSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../contracts/errors.js";
import { failpoint } from "../../machine/failpoint.js";
import { ownerMark } from "../../machine/orphans.js";
import { standing } from "../../machine/standing.js";
import { GuestChannel, guestBinary } from "../guest.js";
import { findBwrap } from "./find-bwrap.js";
import { hintFor } from "./hint.js";
import { type JailSpec, jailCommand } from "./jail.js";
import { startProcess } from "./start-process.js";

/** A running guest and its process. */
export interface RunningGuest {
  channel: GuestChannel;
  /** The process that was started. */
  pid: number;
  /** Closes the channel and waits until the guest, and everything it started, is gone. */
  stop(): Promise<void>;
  /**
   * Closes the channel and waits until nothing runs in the jail any more. The returned function waits for the rest, but only shortly: in a
   * process without memory or files, the kernel still drops an overlay's inodes one by one.
   */
  end(): Promise<() => Promise<void>>;
}

/** The path of the guest's program in a jail. */
export const INSIDE_GUEST = "/glovebox/guest";
const START_TIMEOUT = 20_000;
const STOP_TIMEOUT = 5_000;
/** In the words of the system, and of Node. */
const SCARCE = /\b(EAGAIN|ENOMEM)\b|Resource temporarily unavailable|Cannot allocate memory/;
/** Milliseconds to wait for the rest of an end. */
const SHORTLY = 50;

/** Starts a guest as PID 1 of a jail; `no_isolation` when the jail can't be made or fails its self-test, `not_found` for a missing tree. */
export async function startJailedGuest(
  spec: Omit<JailSpec, "program" | "privileged" | "commandsAreRoot" | "env">,
  signal?: AbortSignal,
): Promise<RunningGuest> {
  const network = spec.network === "none" ? ["--loopback-only"] : [];
  const processes = spec.processes === undefined ? [] : ["--processes", String(spec.processes)];
  const commandsAreRoot = standing() === "bare-root";
  const who = commandsAreRoot ? ["--commands-are-root"] : [];
  const arguments_ = ["serve", "--jailed", ...network, ...who, ...processes, spec.cwd];
  const jail: JailSpec = {
    ...spec,
    binds: [...spec.binds, { source: guestBinary(), target: INSIDE_GUEST }],
    program: [INSIDE_GUEST, ...arguments_],
    privileged: true,
    commandsAreRoot,
    env: {},
    tellsEnd: spec.binds.some(({ overlay }) => overlay !== undefined),
  };
  const { file, args } = jailCommand(jail, findBwrap());
  try {
    return await start([file, ...args], { kind: "jailed", through: jail.through, tellsEnd: jail.tellsEnd }, signal);
  } catch (error) {
    throw missingTree(spec.binds, error) ?? error;
  }
}

/** Starts a guest as an ordinary process: it confines paths and kills process trees, nothing else. */
export async function startPlainGuest(
  workDir: string,
  cgroups: readonly string[],
  signal?: AbortSignal,
  through?: JailSpec["through"],
): Promise<RunningGuest> {
  const guest = guestBinary();
  const groups = cgroups.flatMap((path) => ["--cgroup", path]);
  return await start([guest, "launch", ...groups, "--", guest, "serve", workDir], { kind: "plain", through }, signal);
}

async function start(
  command: readonly string[],
  how: { kind: "jailed" | "plain"; through: JailSpec["through"]; tellsEnd?: boolean | undefined },
  signal?: AbortSignal,
): Promise<RunningGuest> {
  signal?.throwIfAborted();
  const { kind, through, tellsEnd = false } = how;
  const started = startProcess({
    command: [...(through?.command ?? []), ...command],
    // A minimal environment: whoever shares its namespace can read that of PID 1.
    env: { PATH: "/usr/bin:/bin", ...through?.env, ...ownerMark() },
    tellsEnd,
    endsWithParent: kind === "jailed",
  });
  const { gone } = started;
  const ended = Promise.race([gone, started.saysEnd]);
  const channel = new GuestChannel(started.channel);
  const close = async (until: Promise<void>): Promise<void> => {
    channel.close();
    const late = setTimeout(() => started.kill(), STOP_TIMEOUT);
    await until;
    clearTimeout(late);
  };
  const stop = (): Promise<void> => close(gone);
  const end = async (): Promise<() => Promise<void>> => {
    await close(ended);
    const shortly = delay(SHORTLY);
    return () => Promise.race([gone, shortly]);
  };
  const onAbort = (): void => channel.close(new SandboxError("aborted", "the creation of the sandbox was aborted"));
  signal?.addEventListener("abort", onAbort, { once: true });
  const late = setTimeout(
    () => channel.close(new SandboxError("unavailable", "the sandbox did not start in time")),
    START_TIMEOUT,
  );
  try {
    const hello = await channel.hello;
    if (kind === "jailed" && hello.complaint !== "") {
      throw new SandboxError("no_isolation", `the self-test of the sandbox failed: ${hello.complaint}`);
    }
    await failpoint("create.started");
    const pid = await Promise.race([started.pid, gone]);
    if (pid === undefined) throw new SandboxError("backend_lost", "the sandbox ended while it was being opened");
    channel.unref();
    return { channel, pid, stop, end };
  } catch (error) {
    await stop();
    throw kind === "jailed" ? explain(error, started.complaint()) : error;
  } finally {
    clearTimeout(late);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** The error for a directory that somebody removed, which is no matter of isolation; undefined when all exist. */
function missingTree(binds: JailSpec["binds"], cause: unknown): SandboxError | undefined {
  if (!(cause instanceof SandboxError) || cause.code !== "no_isolation") return undefined;
  const trees = binds.flatMap(({ source, overlay }) => (overlay === undefined ? [source] : [source, overlay]));
  const missing = trees.find((path) => lstatSync(path, { throwIfNoEntry: false }) === undefined);
  if (missing === undefined) return undefined;
  return new SandboxError("not_found", `${missing} is gone, and the sandbox needs it`, {
    cause,
    hint: "Somebody removed it. Remove the rest of the sandbox (glovebox rm <id>) and open another",
  });
}

/** Explains a guest that never said hello by what bubblewrap or the launcher reported. */
function explain(error: unknown, complaint: string): unknown {
  if (!(error instanceof SandboxError) || error.code !== "backend_lost") return error;
  if (SCARCE.test(complaint)) {
    const message = `the sandbox could not be started: ${complaint}`;
    return new SandboxError("unavailable", message, {
      cause: error,
      hint: "this user has too many processes, or the machine too little memory",
    });
  }
  return new SandboxError("no_isolation", `the sandbox could not be confined: ${complaint || "it ended at once"}`, {
    cause: error,
    hint: hintFor(complaint),
  });
}
