import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { interleave, ratioGoal, row, timed } from "../parts/measure.mjs";
import { repositoryOf } from "../parts/repositories.mjs";

const CHANGED = 100;
const SIZE = 10_000;

/** A fork of a sandbox with a hundred changed files, against opening one and copying those files. */
export async function measure({ isQuick, scratch }) {
  const rows = [];
  const goals = [];
  const shapes = [
    ["overlay, 50,000 files", { repo: await repositoryOf(50_000, scratch), workspace: "overlay" }],
    ["worktree, 1,000 files", { repo: await repositoryOf(1000, scratch) }],
    ["empty", {}],
  ];
  for (const [name, opts] of shapes) {
    const origin = await createLocalSandbox(opts);
    const changed = await mkdtemp(join(tmpdir(), "bench-fork-"));
    try {
      const files = Array.from({ length: CHANGED }, (_, n) => [`changed/${n}.txt`, `${n}\n`.repeat(SIZE / 4)]);
      await origin.writeFiles(Object.fromEntries(files));
      await origin.exportDirectory("changed", join(changed, "from"));
      const open = async (create) => {
        let sandbox;
        const took = await timed(async () => {
          sandbox = await create();
        });
        await sandbox.teardown();
        return took;
      };
      const { fork, create } = await interleave(
        {
          fork: () => open(() => origin.fork()),
          create: async (round) => {
            const copy = await timed(() => cp(join(changed, "from"), join(changed, `${round}`), { recursive: true }));
            return copy + (await open(() => createLocalSandbox(opts)));
          },
        },
        { rounds: isQuick ? 4 : 15 },
      );
      const [ours, other] = [row(`glovebox, fork, ${name}`, fork), row(`create and copy, ${name}`, create)];
      rows.push(ours, other);
      goals.push(ratioGoal(`fork, ${name}`, { ours, other, atMost: 2, floor: other }));
    } finally {
      await origin.teardown();
      await rm(changed, { recursive: true });
    }
  }
  return { rows, goals };
}
