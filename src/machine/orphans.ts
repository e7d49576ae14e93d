import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../contracts/errors.js";
import { currentOwner, type Owner, ownerTag } from "./owner.js";

/** Names the owner in the environment of every process that works for it on the host. */
const VARIABLE = "GLOVEBOX_OWNER";
/** How long an orphaned process may run on its own, and after each signal, in milliseconds. */
const PATIENCE: readonly (readonly [NodeJS.Signals | undefined, number])[] = [
  [undefined, 10_000],
  ["SIGTERM", 2_000],
  ["SIGKILL", 5_000],
];

/** Of the fields of `/proc/<pid>/stat` behind the name. */
const FLAGS = 6;
const KERNEL_THREAD = 0x0020_0000;
/** How often a process without variables is looked at before it counts as one that has none. */
const LOOKS = 5;

/** The variable that marks a program, so that `awaitOrphans` finds it. */
export function ownerMark(): Readonly<Record<string, string>> {
  return { [VARIABLE]: ownerTag(currentOwner()) };
}

/**
 * Waits until nothing works for a dead process any more, so that nothing that is removed next is made again.
 *
 * Orphans are not signalled at first: a git that is killed while it holds a lock may leave the lock behind forever.
 */
export async function awaitOrphans(owner: Owner): Promise<void> {
  if (process.platform !== "linux") return;
  const mark = `${VARIABLE}=${ownerTag(owner)}`;
  let { found, isCertain } = findMarked(mark);
  for (const [signal, patience] of PATIENCE) {
    if (signal !== undefined) for (const pid of found) send(pid, signal);
    const deadline = performance.now() + patience;
    while (!(isCertain && found.length === 0) && performance.now() < deadline) {
      await delay(20);
      ({ found, isCertain } = findMarked(mark));
    }
    if (found.length === 0) return;
  }
  throw new SandboxError(
    "unavailable",
    `Processes that the dead process ${owner.pid} started don't end: ${found.join(", ")}`,
  );
}

/** The processes that have a variable, as `NAME=value`. */
export interface MarkedProcesses {
  readonly found: number[];
  /** Whether every process could be looked at: one that another program is just replacing has no environment for a moment. */
  readonly isCertain: boolean;
}

/** Finds the processes of this user that have a variable, in whatever session they are. */
export function findMarked(mark: string): MarkedProcesses {
  const found: number[] = [];
  let isCertain = true;
  for (const pid of readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name))) {
    const environment = environmentOf(pid);
    if (environment === undefined) isCertain = false;
    else if (environment.includes(mark)) found.push(Number(pid));
  }
  return { found, isCertain };
}

/** Empty for a process that has ended, belongs to another user or has no variables. Undefined while another program replaces it. */
function environmentOf(pid: string): string[] | undefined {
  for (let look = 0; look < LOOKS; look++) {
    const text = read(`/proc/${pid}/environ`);
    if (text !== "") return text?.split("\0") ?? [];
    // While it is being replaced it has no arguments either, and it may have been replaced between these two looks.
    if (read(`/proc/${pid}/cmdline`) === "") return hasEnded(pid) ? [] : undefined;
  }
  return [];
}

/** A zombie. Threads of the kernel count as well: they never have arguments. */
function hasEnded(pid: string): boolean {
  const fields = read(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, "")
    .split(" ");
  const [state = "Z"] = fields ?? [];
  return "ZX".includes(state) || (Number(fields?.[FLAGS]) & KERNEL_THREAD) !== 0;
}

/** Undefined for a process that has ended or belongs to another user. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended; the next check shows.
  }
}
