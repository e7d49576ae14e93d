import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { bwrapCommand } from "../parts/bwrap.mjs";
import { interleave, ratioGoal, row, timed } from "../parts/measure.mjs";
import { start } from "../parts/processes.mjs";

/** Opening and tearing down an empty sandbox, against one start of bubblewrap. */
export async function measure({ isQuick }) {
  const directory = await mkdtemp(join(tmpdir(), "bench-create-"));
  const teardown = [];
  try {
    const variants = {
      "glovebox, create": async () => {
        let sandbox;
        const took = await timed(async () => {
          sandbox = await createLocalSandbox();
        });
        teardown.push(await timed(() => sandbox.teardown()));
        return took;
      },
      "bwrap, start and end": () => start(...bwrapCommand(directory, ["/bin/true"])),
    };
    const warmup = 3;
    const samples = await interleave(variants, { rounds: isQuick ? 20 : 100, warmup });
    const ours = row("glovebox, create", samples["glovebox, create"]);
    const other = row("bwrap, start and end", samples["bwrap, start and end"]);
    const rows = [ours, row("glovebox, teardown", teardown.slice(warmup)), other];
    return { rows, goals: [ratioGoal("create an empty sandbox", { ours, other, atMost: 2, floor: other })] };
  } finally {
    await rm(directory, { recursive: true });
  }
}
