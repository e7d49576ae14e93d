import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalSandbox } from "../../dist/src/index.js";
import { bwrapCommand } from "../parts/bwrap.mjs";
import { goal, interleave, ratioGoal, row, timed } from "../parts/measure.mjs";
import { descendants, proportionalMemory, start } from "../parts/processes.mjs";
import { git, repositoryOf } from "../parts/repositories.mjs";

const WARM = 20;

/** Sandboxes on one shared checkout, against a worktree each. */
export async function measure({ isQuick, scratch }) {
  const small = await repositoryOf(1000, scratch);
  const large = await repositoryOf(50_000, scratch);
  const first = [];
  for (const repo of [small, large]) {
    first.push(await timed(async () => (await createLocalSandbox({ repo, workspace: "overlay" })).teardown()));
  }
  const teardown = [];
  const remove = [];
  const open = async (repo) => {
    let sandbox;
    const took = await timed(async () => {
      sandbox = await createLocalSandbox({ repo, workspace: "overlay" });
    });
    const { exitCode, stdout } = await sandbox.exec({ argv: ["git", "status", "--porcelain"] });
    if (exitCode !== 0 || stdout !== "") throw new Error(`git status inside ended with ${exitCode}: ${stdout}`);
    const gone = await timed(() => sandbox.teardown());
    if (repo === large) teardown.push(gone);
    return took;
  };
  // Warm up, as in a process that has opened some already.
  for (let n = 0; n < WARM; n++) await open(small);
  const samples = await interleave(
    {
      small: () => open(small),
      large: () => open(large),
      small2: () => open(small),
      large2: () => open(large),
      bwrap: () => start(...bwrapCommand(tmpdir(), ["/bin/true"])),
      add: async (round) => {
        const path = join(tmpdir(), "bench-overlay");
        const took = await timed(() => git(large, "worktree", "add", "--quiet", "-b", `bench-o${round}`, path));
        await git(path, "status", "--porcelain");
        remove.push(await timed(() => git(large, "worktree", "remove", "--force", path)));
        await git(large, "branch", "-D", `bench-o${round}`);
        return took;
      },
    },
    { rounds: isQuick ? 2 : 6 },
  );
  const rows = [
    row("glovebox, overlay, 1,000 files", [...samples.small, ...samples.small2]),
    row("glovebox, overlay, 50,000 files", [...samples.large, ...samples.large2]),
    row("git worktree add, 50,000 files", samples.add),
    row("glovebox, teardown after git status, 50,000 files", teardown),
    row("git worktree remove --force, 50,000 files", remove),
    row("glovebox, first one on a commit, 1,000 files", [first[0]]),
    row("glovebox, first one on a commit, 50,000 files", [first[1]]),
  ];
  const floor = row("bwrap, start and end", samples.bwrap);
  const crowd = await openMany(large, isQuick ? 40 : 200);
  const goals = [
    ratioGoal("overlay create, 50,000 files", { ours: rows[1], other: rows[2], atMost: 1 / 50, floor }),
    ratioGoal("the same against 1,000 files", { ours: rows[1], other: rows[0], atMost: 1.5, floor }),
    ratioGoal("overlay teardown after git status", { ours: rows[3], other: rows[4], atMost: 1 / 8, floor }),
    ...crowd.goals,
  ];
  return { rows: [...rows, floor, ...crowd.rows], goals };
}

async function openMany(repo, count) {
  let sandboxes = [];
  const took = await timed(async () => {
    sandboxes = await Promise.all(
      Array.from({ length: count }, () => createLocalSandbox({ repo, workspace: "overlay" })),
    );
  });
  const memory = proportionalMemory(descendants()) / count;
  const close = await timed(() => Promise.all(sandboxes.map((sandbox) => sandbox.teardown())));
  const rows = [
    row(`${count} live on 50,000 files`, [took]),
    row(`${count} taken down`, [close]),
    row(`each of ${count}, outside Node`, [memory], "MB"),
  ];
  const goals = [
    goal(`${count} live sandboxes on 50,000 files`, { value: took / 1000, unit: "s", atMost: 5 }),
    goal("each of them outside Node", { value: memory, unit: "MB", atMost: 3 }),
  ];
  return { rows, goals };
}
