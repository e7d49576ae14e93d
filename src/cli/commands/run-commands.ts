import type { CliCommand } from "./command.js";
import { type Flag, HELP_FLAG, JSON_FLAG, PR_WITH_FLAG } from "./flags.js";

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
  help: "print the report as JSON at the end; --json=stream: each event as it happens",
};
const TRUST_FLAG: Flag = {
  name: "trust",
  help: "run a blueprint of a repository that is code or wants something of this machine; remembered for its content",
};
const QUIET_FLAG: Flag = { name: "quiet", short: "q", help: "say nothing while it runs" };
const TOKEN_NOTE = "The token is read from GITHUB_TOKEN and from nowhere else. GITHUB_SERVER_URL and GITHUB_API_URL";

/** The verbs of runs: a blueprint done on a repository, and what is left of it. */
export const RUN_COMMANDS: readonly CliCommand[] = [
  {
    name: "run",
    summary: "run a blueprint on a repository, and push what it made",
    operands: "<blueprint>",
    argv: "none",
    operandCount: [0, 1],
    flags: [
      { name: "blueprint", value: "name", help: "the same as the first word" },
      { name: "repo", value: "path|org/repo|url", offers: "directories", help: "what to work on (default: .)" },
      { name: "intent", short: "m", value: "text", help: "what is wanted" },
      { name: "intent-file", value: "path", offers: "files", help: "read the intent from a file; - is stdin" },
      { name: "spec", value: "path", offers: "files", help: "a file that says it in detail, for the blueprint to use" },
      { name: "sandbox", short: "b", value: "backend", offers: "backends", help: "where it runs (default: local)" },
      { name: "image", value: "name", help: "image to run in, where the backend takes one; wins over the blueprint's" },
      { name: "ref", value: "commit", help: "commit, tag or branch to start from (default: HEAD)" },
      { name: "branch", value: "name", help: "branch to work on (default: harness/<run>/<blueprint>)" },
      { name: "base", value: "branch", help: "branch that the pull request is for (default: that of the repository)" },
      { name: "push", help: "push the branch and open a pull request, when all went well" },
      {
        name: "push-on",
        value: "when",
        offers: ["success", "limit", "always"],
        help: "success (default), limit or always: also what is incomplete, as a draft",
      },
      { name: "draft", help: "open the pull request as a draft" },
      PR_WITH_FLAG,
      { name: "agent", value: "name", help: "use this agent, whatever the blueprint names" },
      { name: "model", value: "name", help: "use this model" },
      { name: "input", value: "k=v", repeat: true, help: "an input of the blueprint; repeatable" },
      { name: "max-time", value: "time", help: "limit of the whole run, for example 45m (default: 60m)" },
      { name: "max-cost", value: "usd", help: "limit of what agents may cost, for example 5" },
      { name: "idle-timeout", value: "time", help: "how long an agent may be silent (default: 10m)" },
      { name: "from", value: "node", help: "begin with this node" },
      { name: "until", value: "node", help: "stop after this node" },
      {
        name: "keep",
        value: "when",
        offers: ["never", "failed", "always"],
        help: "keep the sandbox (default: failed)",
      },
      { name: "out", value: "path", offers: "directories", help: "directory of runs (default: .glovebox/runs)" },
      { name: "run-id", value: "id", help: "name of the run (default: a new one)" },
      TRUST_FLAG,
      { name: "allow-no-changes", help: "exit with 0 when nothing was changed" },
      { name: "push-optional", help: "exit with 0 when only the push failed" },
      { name: "dry-run", short: "n", help: "check everything and say what would be done" },
      STREAM_FLAG,
      QUIET_FLAG,
      HELP_FLAG,
    ],
    notes: [
      "Exit codes: 0 success · 1 a node or gate failed · 2 the line or the blueprint cannot be understood · 3 the",
      "environment: a tool, a token or a sandbox is missing · 4 all went well and the push did not · 5 a limit was",
      "reached, the patch is kept · 6 nothing was changed · 130, 143 interrupted.",
      `${TOKEN_NOTE}`,
      "choose another GitHub. One Ctrl-C ends it in order and keeps the work, a second one at once.",
    ],
    examples: [
      ["glovebox run bug-fix --intent-file issue.md", "this repository, in a local sandbox"],
      ["glovebox run bug-fix --repo acme/widgets -m 'fix-login' --push", "a pull request, when it is green"],
      ["glovebox run ./ci.yaml -m nightly --max-time 45m --json", "one report on stdout"],
      ["glovebox run bug-fix -m try --dry-run", "look first"],
    ],
  },
  {
    name: "resume",
    summary: "go on with a run that failed or was interrupted",
    ...RUN,
    flags: [
      { name: "from", value: "node", help: "begin with this node, with the files as they were before it" },
      { name: "max-time", value: "time", help: "limit of what is left" },
      { name: "max-cost", value: "usd", help: "limit of what agents may still cost" },
      TRUST_FLAG,
      STREAM_FLAG,
      QUIET_FLAG,
      HELP_FLAG,
    ],
    notes: ["What is done is not done again, also when the process was killed. Exit codes as of glovebox run."],
    examples: [
      ["glovebox resume 4f2a91c0", "where it stopped"],
      ["glovebox resume 4f2a91c0 --from fix", "this node again, and all after it"],
    ],
  },
  {
    name: "runs",
    summary: "list the runs that there are",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [QUIET_FLAG, ...all],
    examples: [["glovebox runs", "of all repositories, the newest first"]],
  },
  {
    name: "show",
    summary: "show the report of a run",
    ...RUN,
    flags: [{ name: "path", help: "only where its directory is" }, ...all],
    examples: [
      ["glovebox show 4f2a91c0", "what it did, and what to do next"],
      ["glovebox show 4f2a91c0 --json", "report.json"],
    ],
  },
  {
    name: "logs",
    summary: "show what the nodes of a run printed",
    operands: "<run> [node]",
    argv: "none",
    operandCount: [1, 2],
    offers: ["runs", undefined],
    flags: [
      { name: "follow", short: "f", help: "go on until the run is over" },
      { name: "json", help: "print the events themselves, each a line of JSON" },
      HELP_FLAG,
    ],
    notes: ["On a terminal, what could drive it is shown as text. The full logs are files in the run's directory."],
    examples: [
      ["glovebox logs 4f2a91c0 -f", "watch a run of another process"],
      ["glovebox logs 4f2a91c0 test", "one node"],
    ],
  },
  {
    name: "apply",
    summary: "bring the changes of a run into your working tree",
    ...RUN,
    flags: [
      {
        name: "repo",
        value: "path",
        offers: "directories",
        help: "another working tree (default: the repository of the run)",
      },
      ...all,
    ],
    notes: ["Three-way, into files and index. A tree with changes that are not committed is refused, and untouched."],
    examples: [["glovebox apply 4f2a91c0", "then: git diff --cached"]],
  },
  {
    name: "stop",
    summary: "end a run in order, in whatever process it is",
    ...RUN,
    flags: all,
    notes: ["Its work is kept: glovebox resume goes on with it."],
    examples: [["glovebox stop 4f2a91c0", "waits until it is over"]],
  },
  {
    name: "gc",
    summary: "remove old runs, or those that are named, with their snapshots and sandboxes",
    operands: "[run…]",
    argv: "none",
    operandCount: [0, Number.POSITIVE_INFINITY],
    offers: ["runs"],
    flags: [
      { name: "older-than", value: "time", help: "for example 12h or 168h (default: 168h)" },
      { name: "dry-run", short: "n", help: "only tell what would be removed" },
      ...all,
    ],
    notes: ["Never touches a run that goes on. Branches that were pushed stay."],
    examples: [
      ["glovebox gc --older-than 48h --dry-run", "look first"],
      ["glovebox gc 4f2a91c0", "this one, whatever its age"],
    ],
  },
];
