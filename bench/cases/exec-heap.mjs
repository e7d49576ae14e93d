import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { openFloor } from "../parts/floor.mjs";
import { fillHeap } from "../parts/heap.mjs";
import { interleave, row } from "../parts/measure.mjs";
import { execGoals, execVariants, WARM } from "./exec.mjs";

/** As `exec`, in a process that uses 500 MB: starting a program from it copies the page tables of all that memory. */
export async function measure({ isQuick, scratch }) {
  const sandbox = await createLocalSandbox();
  const floor = await openFloor(scratch);
  const directory = await mkdtemp(join(tmpdir(), "bench-exec-"));
  const heap = fillHeap(500);
  try {
    const samples = await interleave(execVariants(sandbox, directory, floor), {
      rounds: isQuick ? 20 : 100,
      warmup: WARM,
      // As a program that works with its memory: a fork makes the next write to each page slow, and that is not to be paid by whoever comes next.
      before: () => heap.use(),
    });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    return { rows, goals: execGoals(rows, 0.1, ", 500 MB heap") };
  } finally {
    heap.release();
    await floor.close();
    await sandbox.teardown();
    await rm(directory, { recursive: true });
  }
}
