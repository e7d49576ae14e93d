import type { CliCommand } from "./command.js";
import { BACKEND_FLAG, type Flag, HELP_FLAG, SANDBOX_FLAGS } from "./flags.js";

/** How the sandboxes of commands are opened, as `exec` opens one. */
const SANDBOX: readonly string[] = [
  ...["repo", "workspace", "work-dir", "image", "network", "memory", "pids", "cpus", "disk", "env", "secret"],
  ...["mount", "label", "isolation"],
];

/** The flags of a batch that `task run` has, too. */
export const BATCH_FLAGS: readonly Flag[] = [
  {
    name: "concurrency",
    short: "c",
    value: "count",
    help: "how many are open at once (default: what this machine can take; 100 at a service)",
  },
  { name: "timeout", value: "time", help: "time limit of each command, for example 10m; a task's own wins" },
  { name: "retries", value: "count", help: "how often a task is repeated that the infrastructure failed (default: 3)" },
  {
    name: "out",
    short: "o",
    value: "directory",
    offers: "directories",
    help: "directory of the journal and the results (default: next to the tasks, .batch)",
  },
  { name: "trust", help: "trust what a repository defines: build contexts outside it, blueprints that are code" },
  { name: "json", help: "print each result as a line of JSON, even on a terminal; status prints one document" },
  HELP_FLAG,
];

/** `glovebox batch`. */
export const BATCH_COMMAND: CliCommand = {
  name: "batch",
  summary: "run thousands of tasks, and continue after any crash",
  operands: "run|resume|retry|status|export <tasks|directory>… [-- command [argument…]]",
  argv: "optional",
  operandCount: [2, 1000],
  offers: [["run", "resume", "retry", "status", "export"], "files"],
  flags: [
    BACKEND_FLAG,
    ...BATCH_FLAGS,
    { name: "max-cost", value: "dollars", help: "start nothing more once the tasks have cost so much" },
    {
      name: "price-per-hour",
      value: "dollars",
      help: "what an hour of an open sandbox costs; agents report theirs themselves",
    },
    { name: "shard", value: "i/n", help: "run only this part of the tasks, for example 2/4" },
    {
      name: "only",
      value: "outcome",
      repeat: true,
      offers: ["infra", "refused", "failed", "passed"],
      help: "with retry: tasks that ended so; repeatable",
    },
    {
      name: "format",
      value: "name",
      offers: ["jsonl", "csv", "table", "html"],
      help: "with export: jsonl (default), csv, table or html",
    },
    ...SANDBOX_FLAGS.filter(({ name }) => SANDBOX.includes(name)),
  ],
  notes: [
    "run     runs the tasks of a file: a JSON object on each line, or a task file (glovebox help task).",
    "        Run it again to continue; tasks that are finished are not run again.",
    "resume  continues with the options that run was given. It wants --env and other secrets again.",
    "retry   runs tasks once more that are finished: --only infra those that the infrastructure failed.",
    "status  shows how far it is, also while it runs.",
    "export  prints the results, of several directories if they are shards of one batch.",
    'A line of the file is a command {"id": "a", "run": "make test"}, a run of a blueprint {"id": "b", "blueprint": …,',
    '"repo": …, "intent": …} or a task with containers {"taskId": "c", "image": …}. See docs/batches.md.',
    "What the infrastructure fails is repeated, and never counts as the result of a task. Results are lines of JSON in",
    "results.jsonl, and on stdout unless that is a terminal; report.html shows them in a browser.",
    "Exits with 0 if every task passed, with 5 if --max-cost stopped it, else with 1.",
  ],
  examples: [
    ["glovebox batch run tasks.jsonl --concurrency 8", "each task's own command, on this machine"],
    ["glovebox batch run tasks.jsonl --backend docker --image node:22 -- npm test", "one command for all"],
    ["glovebox batch run tasks.jsonl --shard 2/4", "a quarter of them, on the second of four machines"],
    ["glovebox batch resume tasks.jsonl", "continue after a crash"],
    ["glovebox batch retry tasks.jsonl --only infra", "what the infrastructure failed, once more"],
    ["glovebox batch status tasks.batch --json", "how far it is"],
    ["glovebox batch export tasks.batch --format csv > results.csv", "for a spreadsheet"],
  ],
};
