import { availableParallelism } from "node:os";

/** What a sandbox of this machine takes, if it has no limit of its own: 64 MiB. */
const USUAL = 64 << 20;
/** What is left to everything else on this machine: 256 MiB. */
const SPARED = 256 << 20;
/** More than this for each core only wait for each other. */
const PER_CORE = 6;
/** How long a look at the memory is believed, in milliseconds: a sandbox takes longer to open. */
const VALID_FOR = 20;
/** A service has its own machines. */
const AT_SERVICE = 100;

/** How many sandboxes may be open at once unless the user says it: what this machine has memory and cores for. */
export function usualConcurrency(runsHere: boolean, memory: number = USUAL): number {
  if (!runsHere) return AT_SERVICE;
  const fitting = Math.floor((process.availableMemory() - SPARED) / memory);
  return Math.max(1, Math.min(PER_CORE * availableParallelism(), fitting));
}

let available = 0;
let readAt = Number.NEGATIVE_INFINITY;

/** Whether this machine has the memory for one more. */
export function hasRoom(memory: number = USUAL): boolean {
  const now = performance.now();
  if (now - readAt > VALID_FOR) {
    // It takes as long as several other parts of a task together.
    available = process.availableMemory();
    readAt = now;
  }
  return available >= SPARED + memory;
}
