import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { interleave, ratioGoal, row, timed } from "../parts/measure.mjs";
import { git, repositoryOf } from "../parts/repositories.mjs";

/** Opening a sandbox on a worktree, against git making the worktree alone. */
export async function measure({ isQuick, scratch }) {
  const rows = [];
  const goals = [];
  for (const [files, rounds] of isQuick
    ? [
        [1000, 4],
        [10_000, 2],
      ]
    : [
        [1000, 20],
        [10_000, 7],
      ]) {
    const repo = await repositoryOf(files, scratch);
    const taken = { remove: [], teardown: [], end: [] };
    const variants = {
      create: async () => {
        let sandbox;
        const took = await timed(async () => {
          sandbox = await createLocalSandbox({ repo });
        });
        taken.teardown.push(await timed(() => sandbox.teardown()));
        return took;
      },
      empty: async () => {
        let sandbox;
        const took = await timed(async () => {
          sandbox = await createLocalSandbox();
        });
        taken.end.push(await timed(() => sandbox.teardown()));
        return took;
      },
      add: async (round) => {
        const path = join(tmpdir(), `bench-worktree-${files}`);
        const took = await timed(() => git(repo, "worktree", "add", "--quiet", "-b", `bench-${round}`, path));
        taken.remove.push(await timed(() => git(repo, "worktree", "remove", "--force", path)));
        await git(repo, "branch", "-D", `bench-${round}`);
        return took;
      },
    };
    const { create, empty, add } = await interleave(variants, { rounds });
    const count = files.toLocaleString("en");
    const made = [
      row(`glovebox, create, ${count} files`, create),
      row(`git worktree add, ${count} files`, add),
      row(`glovebox, teardown, ${count} files`, taken.teardown.slice(1)),
      row(`git worktree remove --force, ${count} files`, taken.remove.slice(1)),
    ];
    // A confined process and a worktree, one after the other: the cost without overlapping them.
    const sums = (one, other) => one.map((sample, n) => sample + other[n]);
    const floors = [
      row(`git worktree add and an empty sandbox, ${count} files`, sums(add, empty)),
      row(
        `the end of an empty sandbox and git worktree remove, ${count} files`,
        sums(taken.remove, taken.end).slice(1),
      ),
    ];
    rows.push(...made, ...floors);
    goals.push(
      ratioGoal(`worktree sandbox, ${count} files`, { ours: made[0], other: made[1], atMost: 1.3, floor: floors[0] }),
      ratioGoal(`its teardown, ${count} files`, { ours: made[2], other: made[3], atMost: 1.1, floor: floors[1] }),
    );
  }
  return { rows, goals };
}
