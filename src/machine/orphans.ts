import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../contracts/errors.js";
import { currentOwner, type Owner, ownerTag } from "./owner.js";

/** Names the owner in the environment of everything that works for it on the host. */
const VARIABLE = "GLOVEBOX_OWNER";
/** How long a program that was left behind may go on by itself, and after each signal. */
const PATIENCE: readonly (readonly [NodeJS.Signals | undefined, number])[] = [
  [undefined, 10_000],
  ["SIGTERM", 2_000],
  ["SIGKILL", 5_000],
];

/** What the environment of a program must hold for `awaitOrphans` to find it. */
export function ownerMark(): Readonly<Record<string, string>> {
  return { [VARIABLE]: ownerTag(currentOwner()) };
}

/**
 * Waits until nothing works for a dead process any more, so that nothing is made anew of what is taken away next.
 *
 * What a dead process started is left alone at first: a git that is ended while it holds a lock may leave it for ever.
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
  throw new SandboxError("unavailable", `Processes of the dead process ${owner.pid} do not end: ${found.join(", ")}`);
}

function findMarked(mark: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name));
  return pids.filter((pid) => environmentOf(pid).includes(mark)).map(Number);
}

/** One that has ended, or is another user's, has none. */
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
    // Gone by itself; the next look tells.
  }
}
