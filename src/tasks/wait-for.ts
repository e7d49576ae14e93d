import { setTimeout as delay } from "node:timers/promises";
import type { EngineImage } from "../../contracts/container-engine.js";
import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../sandbox/types.js";
import { logTail, type OwnCommand } from "./own-command.js";
import type { WaitFor } from "./types.js";

const DEFAULT_TIMEOUT = 60_000;
const FIRST_PAUSE = 20;
const LONGEST_PAUSE = 500;
const CHECK_TIMEOUT = 30_000;
/** The state LISTEN in `/proc/net/tcp`. */
const LISTENING = "0A";

/** The container to wait for. */
export interface Waiting {
  /** Its name in messages. */
  readonly name: string;
  readonly sandbox: Sandbox;
  readonly command: OwnCommand | undefined;
  /** The image's HEALTHCHECK. */
  readonly healthcheck?: NonNullable<EngineImage["healthcheck"]>;
}

/** Waits until a container is ready. Rejects, with its log, at the deadline or when its own command ends first. */
export async function waitUntilReady(waiting: Waiting, waitFor: WaitFor, signal: AbortSignal): Promise<void> {
  const { timeout = DEFAULT_TIMEOUT } = waitFor;
  const over = new AbortController();
  const onAbort = (): void => over.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => over.abort(late(waiting, waitFor, timeout)), timeout);
  const given = new Promise<never>((_, reject) => {
    over.signal.addEventListener("abort", () => reject(over.signal.reason as Error), { once: true });
  });
  given.catch(() => undefined);
  try {
    signal.throwIfAborted();
    await Promise.race([Promise.all(conditions(waiting, waitFor, over.signal)), given, died(waiting, waitFor)]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    over.abort(new Error("the wait is over"));
  }
}

/** A plan is refused that waits for the log of no command, or for the health of an image without a HEALTHCHECK. */
function conditions(waiting: Waiting, { port, log, command, health }: WaitFor, signal: AbortSignal): Promise<void>[] {
  const { sandbox, healthcheck } = waiting;
  const all: Promise<void>[] = [];
  const poll = (check: () => Promise<boolean>): void => void all.push(repeat(check, signal));
  const succeeds = async (argv: readonly string[], timeout: number): Promise<boolean> => {
    const { exitCode, timedOut } = await sandbox.exec({ argv, timeout, maxOutput: 0, signal });
    return exitCode === 0 && !timedOut;
  };
  if (port !== undefined) poll(() => isListening(sandbox, port));
  if (log !== undefined && waiting.command !== undefined) all.push(waiting.command.written);
  if (command !== undefined) {
    const argv = typeof command === "string" ? ["/bin/sh", "-c", command] : command;
    poll(() => succeeds(argv, CHECK_TIMEOUT));
  }
  if (health === true && healthcheck !== undefined) {
    poll(() => succeeds(healthcheck.argv, healthcheck.timeout ?? CHECK_TIMEOUT));
  }
  return all;
}

async function repeat(check: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  for (let pause = FIRST_PAUSE; !signal.aborted; pause = Math.min(pause * 1.5, LONGEST_PAUSE)) {
    if (await check().catch((error: unknown) => whenOver(error, signal))) return;
    await delay(pause, undefined, { signal }).catch(() => undefined);
  }
}

/** Ignores a failure that the end of the wait has caused. */
function whenOver(error: unknown, signal: AbortSignal): boolean {
  if (signal.aborted) return false;
  throw error;
}

/** Reads the kernel's table, which needs no program in the image and no connection. */
async function isListening(sandbox: Sandbox, port: number): Promise<boolean> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const lines = ((await sandbox.readFile(table)) ?? "").split("\n");
    const listens = lines.some((line) => {
      const [, local, , state] = line.trim().split(/\s+/);
      return state === LISTENING && local?.endsWith(suffix) === true;
    });
    if (listens) return true;
  }
  return false;
}

/** Never resolves. Rejects when the command has ended, because then the container cannot become ready. */
async function died({ name, command }: Waiting, waitFor: WaitFor): Promise<never> {
  if (command === undefined) return await new Promise<never>(() => undefined);
  const exit = await command.ended;
  // Its last output may meet the conditions.
  await delay(FIRST_PAUSE);
  const how = exit === undefined ? "was lost" : `ended with exit code ${exit.exitCode}`;
  throw new SandboxError(
    "unavailable",
    `The command of ${name} ${how} before it was ready (${describe(waitFor)})${logs(command)}`,
    { retryable: false },
  );
}

function late({ name, command }: Waiting, waitFor: WaitFor, timeout: number): SandboxError {
  return new SandboxError(
    "unavailable",
    `${name} was not ready (${describe(waitFor)}) within ${timeout} ms${command === undefined ? "" : logs(command)}`,
    { hint: "set waitFor.timeout to wait longer" },
  );
}

function logs(command: OwnCommand): string {
  const tail = logTail(command.status.logs);
  return tail === "" ? "; it wrote nothing" : `; its log ends with:\n${tail}`;
}

function describe({ port, log, command, health }: WaitFor): string {
  const parts = [
    ...(port === undefined ? [] : [`port ${port}`]),
    ...(log === undefined ? [] : [`log ${JSON.stringify(log)}`]),
    ...(command === undefined ? [] : [`command ${JSON.stringify(command)}`]),
    ...(health === undefined ? [] : ["health"]),
  ];
  return parts.join(", ");
}
