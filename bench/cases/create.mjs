import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { bwrapCommand } from "../parts/bwrap.mjs";
import { fillHeap } from "../parts/heap.mjs";
import { interleave, ratioGoal, row, timed } from "../parts/measure.mjs";
import { start } from "../parts/processes.mjs";

const BWRAP = "bwrap, start and end";
const LARGE = ", 500 MB";
/** So many sandboxes are open already. Each of several that come after that is started by another process. */
const BESIDE = 8;

/** Opening and tearing down an empty sandbox, against one start of bubblewrap; and the same in a process that has much memory, and other sandboxes. */
export async function measure({ isQuick }) {
  const directory = await mkdtemp(join(tmpdir(), "bench-create-"));
  const teardown = [];
  const create = async () => {
    let sandbox;
    const took = await timed(async () => {
      sandbox = await createLocalSandbox();
    });
    teardown.push(await timed(() => sandbox.teardown()));
    return took;
  };
  const bwrap = () => start(...bwrapCommand(directory, ["/bin/true"]));
  const beside = [];
  try {
    const warmup = 3;
    const rounds = isQuick ? 20 : 100;
    const small = await interleave({ create, bwrap }, { rounds, warmup });
    const torn = row("glovebox, teardown", teardown.slice(warmup));
    while (beside.length < BESIDE) beside.push(await createLocalSandbox());
    const heap = fillHeap(500);
    const large = await interleave({ create, bwrap }, { rounds: rounds / 2, warmup, before: () => heap.use() });
    heap.release();
    const [ours, other] = [row("glovebox, create", small.create), row(BWRAP, small.bwrap)];
    const rows = [row(`glovebox, create${LARGE}`, large.create), row(`${BWRAP}${LARGE}`, large.bwrap)];
    return {
      rows: [ours, torn, other, ...rows],
      goals: [
        ratioGoal("create an empty sandbox", { ours, other, atMost: 2, floor: other }),
        ratioGoal("create one beside others, 500 MB heap", {
          ours: rows[0],
          other: rows[1],
          atMost: 2,
          floor: rows[1],
        }),
      ],
    };
  } finally {
    for (const sandbox of beside) await sandbox.teardown();
    await rm(directory, { recursive: true });
  }
}
