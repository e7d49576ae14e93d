import { createLocalSandbox } from "../../dist/src/index.js";
import { openFloor } from "../parts/floor.mjs";
import { fillHeap } from "../parts/heap.mjs";
import { interleave, ratioGoal, row } from "../parts/measure.mjs";
import { start } from "../parts/processes.mjs";

const IN_FLIGHT = 16;

/** Sixteen short commands at once, with a small heap and with one of 500 MB. */
export async function measure({ isQuick, scratch }) {
  const sandbox = await createLocalSandbox();
  const floor = await openFloor(scratch);
  try {
    const variants = (each) => ({
      glovebox: () => rate(each, () => sandbox.exec({ argv: ["/bin/true"] })),
      execFile: () => rate(each, () => start("/bin/true")),
      ...(floor.exec && { floor: () => rate(each, floor.exec) }),
    });
    const rounds = isQuick ? 3 : 7;
    const small = await interleave(variants(isQuick ? 64 : 320), { rounds });
    const heap = fillHeap(500);
    const large = await interleave(variants(96), { rounds });
    heap.release();
    const rows = [
      row("glovebox, small heap", small.glovebox, "exec/s"),
      row("execFile, small heap", small.execFile, "exec/s"),
      row("glovebox, 500 MB", large.glovebox, "exec/s"),
      row("execFile, 500 MB", large.execFile, "exec/s"),
      ...(floor.exec ? [row("bare helper, 500 MB", large.floor, "exec/s")] : []),
      ...(floor.exec ? [row("bare helper, small heap", small.floor, "exec/s")] : []),
    ];
    const goals = [
      ratioGoal("16 in flight", { ours: rows[0], other: rows[1], atLeast: 4, floor: rows[5] }),
      ratioGoal("16 in flight, 500 MB heap", { ours: rows[2], other: rows[3], atLeast: 10, floor: rows[4] }),
    ];
    return { rows, goals };
  } finally {
    await floor.close();
    await sandbox.teardown();
  }
}

async function rate(count, work) {
  let left = count;
  const began = performance.now();
  const worker = async () => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return (count * 1000) / (performance.now() - began);
}
