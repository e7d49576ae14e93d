import { type BatchOptions, type BatchTask, readTasks } from "../../batch.js";
import { withUserConfig } from "../../sandbox.js";
import { managerNames, placeOptions } from "../../tasks.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { followBatch, numbersOf, placeOf } from "./batch.js";

/** `glovebox task run <file>`: a batch of the tasks of a file, which runs again what was changed and what had no result. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, argv } = invocation;
  const [action, path = ""] = operands;
  if (action !== "run")
    throw new UsageError(`task has no action "${action}"`, "glovebox task run tasks.yaml -- command");
  const backend = parseManager(flags.text("backend"));
  const numbers = numbersOf(flags);
  const read = await readTasks(path, { trust: flags.has("trust") });
  const other = read.tasks.find((task: BatchTask) => !("setup" in task));
  if (other !== undefined) {
    throw new UsageError(`the task "${other.id}" has no container`, `glovebox batch run ${path} runs it`);
  }
  return await followBatch(invocation, {
    ...read,
    ...numbers,
    ...backend,
    ...(await sandboxOf(backend)),
    ...(argv.length > 0 && { argv }),
    out: flags.text("out") ?? placeOf(path),
    ifChanged: "run",
    retry: flags.has("again") ? ["passed", "failed", "refused", "infra"] : ["refused", "infra"],
  });
}

/** Which engine or cluster the user's configuration chooses. */
async function sandboxOf({ backend }: { backend?: string }): Promise<Pick<BatchOptions, "sandbox">> {
  if (backend === undefined) return {};
  const sandbox = placeOptions(backend, { ...(await withUserConfig({ backend })) });
  return Object.keys(sandbox).length > 0 ? { sandbox } : {};
}

/** The backend of the tasks. Unlike a single sandbox, a task needs containers, so few backends can run one. */
function parseManager(backend: string | undefined): { backend?: string } {
  if (backend === undefined) return {};
  const known = managerNames();
  if (known.includes(backend)) return { backend };
  throw new UsageError(`--backend ${backend} can't run tasks`, `use --backend ${known.join(" or ")}, or leave it out`);
}
