import type { CliCommand } from "./command.js";
import {
  BACKEND_FLAG,
  type Flag,
  HELP_FLAG,
  JSON_FLAG,
  LABEL_FLAG,
  NAME_FLAG,
  PR_WITH_FLAG,
  WORK_DIR_FLAG,
} from "./flags.js";

const all: readonly Flag[] = [JSON_FLAG, HELP_FLAG];
const RUN: Pick<CliCommand, "operands" | "argv" | "operandCount" | "offers"> = {
  operands: "<run>",
  argv: "none",
  operandCount: [1, 1],
  offers: ["runs", undefined],
};

const STREAM_FLAG: Flag = {
  name: "json",
  value: "stream",
  isOptional: true,
  help: "print the report as JSON at the end; --json=stream prints each event as it happens",
};
const TRUST_FLAG: Flag = {
  name: "trust",
  help: "allow a repository's blueprint to run code or use this machine; remembered until it changes",
};
const QUIET_FLAG: Flag = { name: "quiet", short: "q", help: "print nothing while it runs" };

/** The verbs that run a blueprint on a repository and work with the result. */
export const RUN_COMMANDS: readonly CliCommand[] = [
  {
    name: "run",
    summary: "run a blueprint on a repository, and push the changes",
    operands: "<blueprint>",
    argv: "none",
    operandCount: [0, 1],
    flags: [
      { name: "blueprint", value: "name", help: "the blueprint; same as the operand" },
      { name: "repo", value: "path|org/repo|url", offers: "directories", help: "what to work on (default: .)" },
      { name: "intent", short: "m", value: "text", help: "what you want done" },
      { name: "intent-file", value: "path", offers: "files", help: "read the intent from a file; - is stdin" },
      { name: "spec", value: "path", offers: "files", help: "a file with a detailed specification, for the blueprint" },
      { ...BACKEND_FLAG, alias: "sandbox", help: `${BACKEND_FLAG.help}; also --sandbox` },
      { name: "image", value: "name", help: "image to run in, if the backend uses one; overrides the blueprint's" },
      WORK_DIR_FLAG,
      { ...NAME_FLAG, help: "name of the run's sandbox; no two sandboxes have the same" },
      { ...LABEL_FLAG, help: "label of the run's sandbox; repeatable" },
      { name: "ref", value: "commit", help: "commit, tag or branch to start from (default: HEAD)" },
      { name: "branch", value: "name", help: "branch to work on (default: harness/<run>/<blueprint>)" },
      { name: "base", value: "branch", help: "base branch of the pull request (default: the repository's own)" },
      { name: "push", help: "push the branch and open a pull request if the run succeeds" },
      {
        name: "push-on",
        value: "when",
        offers: ["success", "limit", "always"],
        help: "success (default), limit or always; incomplete work is pushed as a draft",
      },
      { name: "draft", help: "open the pull request as a draft" },
      PR_WITH_FLAG,
      { name: "agent", value: "name", help: "use this agent instead of the blueprint's" },
      { name: "model", value: "name", help: "use this model" },
      { name: "input", value: "k=v", repeat: true, help: "set an input of the blueprint; repeatable" },
      { name: "max-time", value: "time", help: "time limit of the whole run, for example 45m (default: 60m)" },
      { name: "max-cost", value: "usd", help: "cost limit of all agents in US dollars, for example 5" },
      { name: "idle-timeout", value: "time", help: "how long an agent may be silent (default: 10m)" },
      { name: "from", value: "node", help: "start at this node" },
      { name: "until", value: "node", help: "stop after this node" },
      {
        name: "keep",
        value: "when",
        offers: ["never", "failed", "always"],
        help: "keep the sandbox (default: failed)",
      },
      { name: "out", value: "path", offers: "directories", help: "directory for runs (default: .glovebox/runs)" },
      { name: "run-id", value: "id", help: "id of the run (default: a random one)" },
      TRUST_FLAG,
      { name: "allow-no-changes", help: "exit with 0 if nothing changed" },
      { name: "push-optional", help: "exit with 0 if only the push failed" },
      { name: "dry-run", short: "n", help: "check everything and print what would be done" },
      STREAM_FLAG,
      QUIET_FLAG,
      HELP_FLAG,
    ],
    notes: [
      "Exit codes: 0 success · 1 a node or gate failed · 2 the command line or the blueprint is wrong · 3 a tool, a",
      "token or a sandbox is missing · 4 everything succeeded except the push · 5 a limit was reached; the patch is",
      "kept · 6 nothing changed · 130, 143 interrupted.",
      "Reads the token from GLOVEBOX_TOKEN, GITHUB_TOKEN or GH_TOKEN, in this order. Set GITHUB_SERVER_URL and",
      "GITHUB_API_URL to use another GitHub server.",
      "Ctrl-C stops the run cleanly and keeps its work; a second Ctrl-C stops it at once.",
    ],
    examples: [
      ["glovebox run bug-fix --intent-file issue.md", "this repository, in a local sandbox"],
      ["glovebox run bug-fix --repo acme/widgets -m 'fix-login' --push", "a pull request, if it succeeds"],
      ["glovebox run ./ci.yaml -m nightly --max-time 45m --json", "one report on stdout"],
      ["glovebox run bug-fix -m try --dry-run", "look first"],
    ],
  },
  {
    name: "resume",
    summary: "continue a run that failed or was interrupted",
    ...RUN,
    operands: "[run]",
    operandCount: [0, 1],
    flags: [
      { name: "from", value: "node", help: "start at this node, with the files as they were before it" },
      { name: "max-time", value: "time", help: "time limit of the rest of the run" },
      { name: "max-cost", value: "usd", help: "cost limit of the rest of the run in US dollars" },
      TRUST_FLAG,
      STREAM_FLAG,
      QUIET_FLAG,
      HELP_FLAG,
    ],
    notes: [
      "Without a run, continues the only one that failed, was interrupted or reached a limit.",
      "Finished nodes don't run again, even if the process was killed. Same exit codes as glovebox run.",
    ],
    examples: [
      ["glovebox resume", "if there is only one to continue"],
      ["glovebox resume 4f2a91c0", "continue where it stopped"],
      ["glovebox resume 4f2a91c0 --from fix", "repeat this node and all after it"],
    ],
  },
  {
    name: "runs",
    summary: "list the runs",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [{ name: "quiet", short: "q", help: "print only the ids" }, ...all],
    examples: [["glovebox runs", "of all repositories, newest first"]],
  },
  {
    name: "show",
    summary: "show the report of a run",
    ...RUN,
    flags: [{ name: "path", help: "print only the path of its directory" }, ...all],
    examples: [
      ["glovebox show 4f2a91c0", "what it did, and what to do next"],
      ["glovebox show 4f2a91c0 --json", "report.json"],
    ],
  },
  {
    name: "logs",
    summary: "show the output of a run's nodes",
    operands: "<run> [node]",
    argv: "none",
    operandCount: [1, 2],
    offers: ["runs", undefined],
    flags: [
      { name: "follow", short: "f", help: "keep printing until the run ends" },
      { name: "json", help: "print each event as a line of JSON" },
      HELP_FLAG,
    ],
    notes: [
      "On a terminal, colours pass and other escape sequences are shown as text. The full logs are files in the run's directory.",
    ],
    examples: [
      ["glovebox logs 4f2a91c0 -f", "watch a run in another process"],
      ["glovebox logs 4f2a91c0 test", "one node"],
    ],
  },
  {
    name: "apply",
    summary: "apply the changes of a run to your working tree, or make them a branch",
    ...RUN,
    flags: [
      {
        name: "repo",
        value: "path",
        offers: "directories",
        help: "repository to change (default: the run's)",
      },
      {
        name: "branch",
        value: "name",
        help: "make the changes a commit on a new local branch; touches no file of yours",
      },
      { name: "expect", value: "commit", help: "with --branch: move an existing branch that is at this commit" },
      ...all,
    ],
    notes: [
      "Merges three-way into files and index. Refuses a tree with uncommitted changes and leaves it untouched.",
      "With --branch, the commit's parent is the commit that the run started from. A branch that exists is moved only",
      "from the commit you --expect, and one that is checked out anywhere never.",
    ],
    examples: [
      ["glovebox apply 4f2a91c0", "then: git diff --cached"],
      ["glovebox apply 4f2a91c0 --branch fix/login", "then: git switch fix/login"],
    ],
  },
  {
    name: "stop",
    summary: "stop a run cleanly, whichever process runs it",
    ...RUN,
    flags: all,
    notes: ["Keeps its work: glovebox resume continues it."],
    examples: [["glovebox stop 4f2a91c0", "waits until the run has ended"]],
  },
  {
    name: "gc",
    summary: "remove old runs, or the named ones, with their snapshots and sandboxes",
    operands: "[run…]",
    argv: "none",
    operandCount: [0, Number.POSITIVE_INFINITY],
    offers: ["runs"],
    flags: [
      { name: "older-than", value: "time", help: "for example 12h or 168h (default: 168h)" },
      { name: "dry-run", short: "n", help: "only print what would be removed" },
      ...all,
    ],
    notes: ["Never touches a running run, nor branches that were pushed."],
    examples: [
      ["glovebox gc --older-than 48h --dry-run", "look first"],
      ["glovebox gc 4f2a91c0", "this run, whatever its age"],
    ],
  },
];
