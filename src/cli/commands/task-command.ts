import type { CliCommand } from "./command.js";
import { HELP_FLAG } from "./flags.js";

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
      help: "what runs the containers (default: docker)",
    },
    { name: "concurrency", short: "c", value: "count", help: "tasks to run at once (default: one per core)" },
    { name: "timeout", value: "time", help: "time limit of each command, for example 10m; a task's own wins" },
    {
      name: "results",
      value: "path",
      offers: "files",
      help: "file for the results (default: next to the task file, .results.jsonl)",
    },
    { name: "trust", help: "let a task file in a repository build from directories outside that repository" },
    { name: "again", help: "also run the tasks that are done" },
    { name: "json", help: "print each result as a line of JSON, even on a terminal" },
    HELP_FLAG,
  ],
  notes: [
    "A task is one container to work in, and the services it needs: see docs/tasks.md. The command runs in every",
    "task without a run: of its own, with GLOVEBOX_TASK_ID set. Each result is a line of JSON in the results file,",
    "and on stdout unless that is a terminal. Run the same line again to continue: a task whose command has ended",
    "is done, whatever its exit code, unless you changed the task.",
    "Exits with 0 if every task of the file succeeded, else with 1.",
  ],
  examples: [
    ["glovebox task run tasks.yaml --concurrency 8 -- pytest -q", "the same command in every task"],
    ["glovebox task run tasks.yaml", "each task's own command"],
    ["glovebox task run tasks.yaml --again > results.jsonl", "all tasks once more"],
  ],
};
