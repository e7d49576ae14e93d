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
  let found = findMarked(mark);
  for (const [signal, patience] of PATIENCE) {
    if (signal !== undefined) for (const pid of found) send(pid, signal);
    const deadline = performance.now() + patience;
    while (found.length > 0 && performance.now() < deadline) {
      await delay(20);
      found = findMarked(mark);
    }
    if (found.length === 0) return;
  }
  throw new SandboxError(
    "unavailable",
    `Processes that the dead process ${owner.pid} started don't end: ${found.join(", ")}`,
  );
}

function findMarked(mark: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  return pids.filter((pid) => environmentOf(pid).includes(mark)).map(Number);
}

/** Empty for a process that has ended or belongs to another user. */
function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
  } catch {
    return [];
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended; the next check shows.
  }
}
