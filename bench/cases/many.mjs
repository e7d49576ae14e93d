import { createLocalSandbox } from "../../dist/src/index.js";
import { census } from "../parts/census.mjs";
import { goal, row, timed } from "../parts/measure.mjs";
import { descendants, proportionalMemory } from "../parts/processes.mjs";
import { repositoryOf } from "../parts/repositories.mjs";

/** Two hundred sandboxes at once, half of them on worktrees of one repository: all work, and all are removed. */
export async function measure({ isQuick, scratch }) {
  const count = isQuick ? 40 : 200;
  const repo = await repositoryOf(20, scratch);
  await (await createLocalSandbox({ repo })).teardown();
  const before = await census(repo);
  let sandboxes = [];
  let wrong = 0;
  const numbers = Array.from({ length: count }, (_, n) => n);
  const open = await timed(async () => {
    sandboxes = await Promise.all(numbers.map((n) => createLocalSandbox(n % 2 === 0 ? { repo } : {})));
  });
  const memory = proportionalMemory(descendants()) / count;
  const use = await timed(async () => {
    await Promise.all(
      sandboxes.map(async (sandbox, n) => {
        await sandbox.writeFile("mine", `${n}`);
        const { stdout } = await sandbox.exec({ argv: ["cat", "mine"] });
        const names = await sandbox.listDirectory();
        if (stdout !== `${n}` || names.includes("src") !== (n % 2 === 0)) wrong += 1;
      }),
    );
  });
  const close = await timed(() => Promise.all(sandboxes.map((sandbox) => sandbox.teardown())));
  const after = await census(
    repo,
    sandboxes.map(({ id }) => id),
  );
  const kinds = Object.keys(before).filter((kind) => after[kind] !== before[kind]);
  const rows = [
    row(`${count} opened at once`, [open]),
    row(`${count} times write, exec, list`, [use]),
    row(`${count} taken down at once`, [close]),
    row("memory outside Node, each", [memory], "MB"),
  ];
  const goals = [
    goal(`sandboxes of ${count} that answered wrongly`, { value: wrong, unit: "", atMost: 0 }),
    goal("kinds of the census that are not back", { value: kinds.length, unit: "", atMost: 0 }),
  ];
  const told = kinds.map((kind) => `${kind}: ${before[kind]} before, ${after[kind]} after`);
  return { rows, goals, notes: [`census: ${Object.keys(before).join(", ")}`, ...told] };
}
