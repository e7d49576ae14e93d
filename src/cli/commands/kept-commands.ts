import type { CliCommand } from "./command.js";
import { type Flag, HELP_FLAG, JSON_FLAG, PR_WITH_FLAG } from "./flags.js";

const all: readonly Flag[] = [JSON_FLAG, HELP_FLAG];

/** The verbs that work on the files of a kept sandbox. */
export const KEPT_COMMANDS: readonly CliCommand[] = [
  {
    name: "snapshot",
    summary: "save the files of a kept sandbox",
    operands: "<id|name>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes"],
    flags: [{ name: "name", value: "name", help: "name it, to use the name wherever an id is asked for" }, ...all],
    notes: ["Prints the id of the snapshot, which outlives the sandbox. Doesn't save processes or their memory."],
    examples: [
      ["glovebox snapshot 3f2a9c41d07be655", "files, ignored ones too, and commits made in the sandbox"],
      ["glovebox snapshot 3f2a9c41d07be655 --name before-upgrade", "then: restore <id> before-upgrade"],
    ],
  },
  {
    name: "snapshots",
    summary: "list the snapshots, or delete some",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [
      {
        name: "delete",
        value: "id|name",
        repeat: true,
        offers: "snapshots",
        help: "delete this one for good; repeatable",
      },
      { name: "quiet", short: "q", help: "print only the names, and the ids of those that have none" },
      ...all,
    ],
    examples: [
      ["glovebox snapshots", "of all sandboxes, removed ones too"],
      ["glovebox snapshots --delete 3f2a9c41d07be655-1-0a1b2c3d", "snapshots are never deleted on their own"],
    ],
  },
  {
    name: "restore",
    summary: "restore the files of a kept sandbox to a snapshot",
    operands: "<id|name> <snapshot>",
    argv: "none",
    operandCount: [2, 2],
    offers: ["sandboxes", "snapshots"],
    flags: all,
    notes: [
      "Removes files that are not in the snapshot. You can restore a snapshot into any sandbox on the same",
      "repository. If restoring fails, nothing changes.",
    ],
    examples: [["glovebox restore 3f2a9c41d07be655 3f2a9c41d07be655-1-0a1b2c3d", "back to that state"]],
  },
  {
    name: "fork",
    summary: "copy a kept sandbox; the copies are kept too",
    operands: "<id|name>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes"],
    flags: [{ name: "count", value: "number", help: "how many (default: 1)" }, ...all],
    notes: ["Prints the id of each copy. If one can't be made, none is. glovebox rm <id> removes one."],
    examples: [
      ["glovebox fork 3f2a9c41d07be655", "continue in two directions"],
      ["glovebox fork 3f2a9c41d07be655 --count 3", "three attempts at once"],
    ],
  },
  {
    name: "diff",
    summary: "show what a run changed, or what changed in a kept sandbox since it was created",
    operands: "<id|name|run>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes and runs", undefined],
    flags: [
      { name: "stat", help: "print only the number of changed lines per file" },
      { name: "name-status", help: "print only the names: A added, M modified, D deleted, R renamed" },
      ...all,
    ],
    notes: [
      "A sandbox must have been opened with --repo. Ignored files are left out. Files and pipes get a patch for",
      "git apply, which works unless a binary file changed: for those the patch only says that they differ. On a",
      "terminal, escape sequences are shown as text.",
      "A name with a line break, a quote or a backslash is printed as a JSON string.",
    ],
    examples: [
      ["glovebox diff 3f2a9c41d07be655", "the patch"],
      ["glovebox diff 3f2a9c41d07be655 --name-status", "the files"],
      ["glovebox diff 3f2a9c41d07be655 | git apply", "apply it to your files"],
    ],
  },
  {
    name: "export",
    summary: "copy a directory or a file out of a kept sandbox",
    operands: "<id|name> <path inside> <host path>",
    argv: "none",
    operandCount: [3, 3],
    offers: ["sandboxes", undefined, "files"],
    flags: all,
    notes: [
      "The host path must not exist, or be an empty directory. Prints it. Links that lead out of the directory are left",
      "out, with a warning. Don't trust the files more than the program that wrote them.",
    ],
    examples: [
      ["glovebox export 3f2a9c41d07be655 dist ./out", "all of it, or nothing if it fails"],
      ["glovebox export 3f2a9c41d07be655 report.json ./report.json", "one file"],
    ],
  },
  {
    name: "import",
    summary: "copy a directory or a file into a kept sandbox",
    operands: "<id|name> <host path> <path inside>",
    argv: "none",
    operandCount: [3, 3],
    offers: ["sandboxes", "files", undefined],
    flags: [{ name: "archive", help: "unpack a tar archive, gzipped or not, into a directory" }, ...all],
    notes: [
      "Overwrites existing files. Copies symbolic links as links and never follows them. At most 8 GiB.",
      "Refuses the whole archive if it has a device, or a name or link that leads outside.",
    ],
    examples: [
      ["glovebox import 3f2a9c41d07be655 ./fixtures tests/fixtures", "creates the directory if needed"],
      ["glovebox import 3f2a9c41d07be655 ./.env.test .env", "one file"],
      ["glovebox import 3f2a9c41d07be655 ./fixtures.tar.gz tests --archive", "the archive's contents"],
    ],
  },
  {
    name: "push",
    summary: "push the changes of a run, or the files of a kept sandbox",
    operands: "<id|name|run>",
    argv: "none",
    operandCount: [1, 1],
    offers: ["sandboxes and runs", undefined],
    flags: [
      { name: "branch", value: "name", help: "for a sandbox, required: branch to create, on the remote and here" },
      { name: "base", value: "branch", help: "for a run: base branch of the pull request" },
      { name: "draft", help: "for a run: open the pull request as a draft" },
      PR_WITH_FLAG,
      ...all,
    ],
    notes: [
      "For a run, pushes exactly the files in its report and opens a pull request.",
      "Exits with 4 if the remote refuses.",
      "For a sandbox, pushes to the repository's remote origin over https, and never overwrites commits there.",
      "Reads the token from GLOVEBOX_TOKEN, GITHUB_TOKEN or GH_TOKEN, in this order. You can't pass it as an argument,",
      "because every user of the machine can read those. The last two are sent only to GitHub (GITHUB_SERVER_URL).",
      "Exits with 1 if the remote refuses.",
    ],
    examples: [
      ["glovebox push 3f2a9c41d07be655 --branch fix/login", "then open a pull request from it"],
      ["glovebox push 4f2a91c0", "a run whose push failed, or that was started without --push"],
    ],
  },
];
