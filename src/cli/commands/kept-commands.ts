import type { CliCommand } from "./command.js";
import { type Flag, HELP_FLAG, JSON_FLAG, PR_WITH_FLAG } from "./flags.js";

const all: readonly Flag[] = [JSON_FLAG, HELP_FLAG];

/** The verbs that work on the files of a kept sandbox. */
export const KEPT_COMMANDS: readonly CliCommand[] = [
  {
    name: "snapshot",
    summary: "save the files of a kept sandbox",
    operands: "<id>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes"],
    flags: all,
    notes: ["Prints the id of the snapshot, which outlives the sandbox. Processes and their memory are not saved."],
    examples: [["glovebox snapshot 3f2a9c41d07be655", "files, ignored ones too, and the commits made inside"]],
  },
  {
    name: "snapshots",
    summary: "list the snapshots that there are, or delete some",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [
      { name: "delete", value: "id", repeat: true, offers: "snapshots", help: "delete this one for good; repeatable" },
      { name: "quiet", short: "q", help: "only the ids" },
      ...all,
    ],
    examples: [
      ["glovebox snapshots", "of all sandboxes, also of those that are gone"],
      ["glovebox snapshots --delete 3f2a9c41d07be655-1-0a1b2c3d", "nothing else ever deletes one"],
    ],
  },
  {
    name: "restore",
    summary: "bring the files of a kept sandbox back to a snapshot",
    operands: "<id> <snapshot>",
    argv: "none",
    operandCount: [2, 2],
    offers: ["sandboxes", "snapshots"],
    flags: all,
    notes: [
      "What is not in the snapshot is taken away. A snapshot fits any sandbox on the same repository. When it",
      "cannot be restored, nothing is changed.",
    ],
    examples: [["glovebox restore 3f2a9c41d07be655 3f2a9c41d07be655-1-0a1b2c3d", "as it was then"]],
  },
  {
    name: "fork",
    summary: "make copies of a kept sandbox, which are kept too",
    operands: "<id>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes"],
    flags: [{ name: "count", value: "number", help: "how many (default: 1)" }, ...all],
    notes: ["Prints the id of each. All of them are made, or none. glovebox rm <id> removes one."],
    examples: [
      ["glovebox fork 3f2a9c41d07be655", "go on in two directions"],
      ["glovebox fork 3f2a9c41d07be655 --count 3", "three attempts at once"],
    ],
  },
  {
    name: "diff",
    summary: "show what was changed in a run, or in a kept sandbox since its start",
    operands: "<id|run>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes and runs", undefined],
    flags: [
      { name: "stat", help: "only how many lines of each file" },
      { name: "name-status", help: "only which files: A added, M modified, D deleted, R renamed" },
      ...all,
    ],
    notes: [
      "A sandbox must have been made with --repo. Ignored files are left out. Into a file or a pipe goes a patch",
      "that git apply takes, as long as no binary file was changed: of those it only says that they differ. On a",
      "terminal, what could drive it is shown as text.",
      "A name with a line end, a quote or a backslash is shown as a JSON string.",
    ],
    examples: [
      ["glovebox diff 3f2a9c41d07be655", "the patch"],
      ["glovebox diff 3f2a9c41d07be655 --name-status", "the files"],
      ["glovebox diff 3f2a9c41d07be655 | git apply", "take it over"],
    ],
  },
  {
    name: "export",
    summary: "copy a directory or a file out of a kept sandbox",
    operands: "<id> <path inside> <host path>",
    argv: "none",
    operandCount: [3, 3],
    offers: ["sandboxes", undefined, "files"],
    flags: all,
    notes: [
      "The host path must be absent, or for a directory an empty one, and no symbolic link. Prints where the files are.",
      "What comes out is as untrusted as what ran inside. Links that lead out of the directory are left out, with a warning.",
    ],
    examples: [
      ["glovebox export 3f2a9c41d07be655 dist ./out", "all of it or nothing"],
      ["glovebox export 3f2a9c41d07be655 report.json ./report.json", "one file"],
    ],
  },
  {
    name: "import",
    summary: "copy a directory or a file into a kept sandbox",
    operands: "<id> <host path> <path inside>",
    argv: "none",
    operandCount: [3, 3],
    offers: ["sandboxes", "files", undefined],
    flags: [{ name: "archive", help: "unpack a tar archive, compressed by gzip or not, into a directory" }, ...all],
    notes: [
      "Goes over what is there. Links of the host are copied as links, never followed. At most 8 GiB.",
      "An archive with a name or a link that leads out, or a device in it, is refused as a whole.",
    ],
    examples: [
      ["glovebox import 3f2a9c41d07be655 ./fixtures tests/fixtures", "made when it is not there"],
      ["glovebox import 3f2a9c41d07be655 ./.env.test .env", "one file"],
      ["glovebox import 3f2a9c41d07be655 ./fixtures.tar.gz tests --archive", "what is in it"],
    ],
  },
  {
    name: "push",
    summary: "push what a run made, or the files of a kept sandbox",
    operands: "<id|run>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes and runs", undefined],
    flags: [
      { name: "branch", value: "name", help: "of a sandbox: branch at the remote, and here; needed" },
      { name: "base", value: "branch", help: "of a run: branch that the pull request is for" },
      { name: "draft", help: "of a run: open the pull request as a draft" },
      PR_WITH_FLAG,
      ...all,
    ],
    notes: [
      "Of a run exactly the files that its report tells of are pushed, and a pull request is opened; the token is read",
      "from GITHUB_TOKEN, and the exit code is 4 when the remote refuses.",
      "Goes to the remote origin of the repository, over https, never over commits that it does not build upon.",
      "The token is read from GLOVEBOX_TOKEN, GITHUB_TOKEN or GH_TOKEN, in this order, and from nowhere else: the",
      "arguments of a program can be read by everybody. The last two are for GitHub (GITHUB_SERVER_URL) and go",
      "nowhere else. The exit code is 1 when the remote refuses.",
    ],
    examples: [
      ["glovebox push 3f2a9c41d07be655 --branch fix/login", "then open a pull request from it"],
      ["glovebox push 4f2a91c0", "a run whose push failed, or that was not to be pushed"],
    ],
  },
];
