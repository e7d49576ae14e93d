import { BATCH_FLAGS } from "./batch-command.js";
import type { CliCommand } from "./command.js";

/** `glovebox task`. */
export const TASK_COMMAND: CliCommand = {
  name: "task",
  summary: "run the tasks of a file, each in containers of its own",
  operands: "run <file> [-- command [argument…]]",
  argv: "optional",
  operandCount: [2, 2],
  offers: [["run"], "files"],
  flags: [
    {
      name: "backend",
      short: "b",
      value: "name",
      help: "what runs the containers: docker or kubernetes (default: docker)",
    },
    { name: "again", help: "also run the tasks that are done" },
    ...BATCH_FLAGS,
  ],
  notes: [
    "A task is one container to work in, and the services it needs: see docs/tasks.md. The command runs in every",
    "task without a run: of its own, with GLOVEBOX_TASK_ID set. It is a batch like those of glovebox batch, which",
    "shows and exports it, too. Run the same line again to continue: a task whose command has ended is done, whatever",
    "its exit code, unless you changed the task.",
    "Exits with 0 if every task of the file passed, else with 1.",
  ],
  examples: [
    ["glovebox task run tasks.yaml --concurrency 8 -- pytest -q", "the same command in every task"],
    ["glovebox task run tasks.yaml", "each task's own command"],
    ["glovebox task run tasks.yaml --backend kubernetes", "a pod of a cluster for each container"],
    ["glovebox task run tasks.yaml --again > results.jsonl", "all tasks once more"],
  ],
};
