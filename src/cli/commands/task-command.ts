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
    { name: "concurrency", short: "c", value: "count", help: "tasks at one time (default: one for each core)" },
    { name: "timeout", value: "time", help: "deadline of each command, for example 10m, unless the task has its own" },
    {
      name: "results",
      value: "path",
      offers: "files",
      help: "where results are written and looked for (default: beside the file, .results.jsonl)",
    },
    { name: "trust", help: "let a task file in a repository build from directories outside of that repository" },
    { name: "again", help: "run also the tasks that are done" },
    { name: "json", help: "print each result as a line of JSON, also on a terminal" },
    HELP_FLAG,
  ],
  notes: [
    "A task is one container to work in, and the services that it needs: see docs/tasks.md. The command runs",
    "in every task that has no run: of its own, with GLOVEBOX_TASK_ID set. Each result is a line of JSON in the",
    "file of results, and on stdout unless that is a terminal. Run it again and it goes on where it stopped: a",
    "task whose command has ended is done, whatever its exit code; one that was changed since is not.",
    "The exit code is 0 when every task of the file has succeeded, else 1.",
  ],
  examples: [
    ["glovebox task run tasks.yaml --concurrency 8 -- pytest -q", "the same in every task"],
    ["glovebox task run tasks.yaml", "what each task says itself"],
    ["glovebox task run tasks.yaml --again > results.jsonl", "all of them once more"],
  ],
};
