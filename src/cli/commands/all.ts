import { BLUEPRINT_COMMANDS } from "./blueprint-commands.js";
import type { CliCommand } from "./command.js";
import { BACKEND_FLAG, type Flag, HELP_FLAG, JSON_FLAG, SANDBOX_FLAGS } from "./flags.js";
import { KEPT_COMMANDS } from "./kept-commands.js";
import { RUN_COMMANDS } from "./run-commands.js";
import { TASK_COMMAND } from "./task-command.js";

const all: readonly Flag[] = [JSON_FLAG, HELP_FLAG];

/** Every verb, in the order in which the help lists them. */
export const COMMANDS: readonly CliCommand[] = [
  {
    name: "exec",
    summary: "run a command in a sandbox, then remove the sandbox",
    operands: "-- command [argument…]",
    argv: "required",
    operandCount: [0, 0],
    flags: [...SANDBOX_FLAGS, { name: "raw", help: "print the output unchanged, escape sequences too" }, ...all],
    notes: [
      "Exits with the command's exit code: 128+n if signal n ended it, 126 if it can't be executed, 127 if it",
      "doesn't exist. 124: it ran into its --timeout. 2: the command line is wrong. 1: Glovebox itself failed;",
      "stderr has a line `glovebox: …`. 130, 143, 129: glovebox got SIGINT, SIGTERM, SIGHUP. 141: nobody reads the",
      "output anymore. Glovebox itself never exits with 125.",
      "The command reads your stdin if it is a file or a pipe, not if it is a terminal.",
      "On a terminal, escape sequences, \\r and bidi characters are shown as text unless you pass --raw.",
      "Files and pipes get every byte unchanged.",
      "A remote --repo that asks for a token gets GLOVEBOX_TOKEN; one on GitHub also GITHUB_TOKEN or GH_TOKEN.",
    ],
    examples: [
      ["glovebox exec -- echo hello", "an empty sandbox, no network"],
      ["glovebox exec --repo . --branch fix -- npm test", "a worktree of this repository"],
      ["glovebox exec --repo https://github.com/acme/widgets -- ls", "a clone, kept up to date; or acme/widgets"],
      ["glovebox exec --repo . --workspace overlay --keep -- npm test", "ready at once, however large it is"],
      ["glovebox exec --network allow=packages.example.org -- npm ci", "only this host"],
      ["glovebox exec --backend docker --image debian:bookworm-slim -- id", "in a container"],
      ["glovebox exec --memory 512m --timeout 30s -- node script.js", "bounded"],
      ["glovebox exec --json -- uname -a", "the result as JSON"],
      ["glovebox exec --keep -- sh -c 'echo 1 > a'", "keep the files; then: exec --id <id> -- cat a"],
    ],
  },
  {
    name: "shell",
    summary: "open a terminal in a sandbox",
    operands: "[-- command [argument…]]",
    argv: "optional",
    operandCount: [0, 0],
    flags: [...SANDBOX_FLAGS, HELP_FLAG],
    notes: [
      "Starts bash if the sandbox has it, else sh; or the command after --. Needs a terminal.",
      "The program inside can write escape sequences to your terminal. When the shell ends, Glovebox resets the",
      "modes it may have left set. To look at untrusted output, use exec.",
      "This is the only verb without --json; use exec --json instead.",
    ],
    examples: [
      ["glovebox shell", "look around in an empty sandbox"],
      ["glovebox shell --repo . --network full", "work on this repository, with network access"],
      ["glovebox shell --id <id>", "return to a kept sandbox"],
    ],
  },
  {
    name: "ls",
    summary: "list the sandboxes",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [{ name: "quiet", short: "q", help: "print only the ids" }, ...all],
    examples: [
      ["glovebox ls", "the ones in use, kept or left over"],
      ["glovebox ls --json", "for programs"],
    ],
  },
  {
    name: "rm",
    summary: "remove a kept sandbox",
    operands: "<id>…",
    argv: "none",
    operandCount: [1, Number.POSITIVE_INFINITY],
    offers: ["sandboxes"],
    flags: all,
    notes: ["A sandbox that a process has open can't be removed: end that process first."],
    examples: [["glovebox rm 3f2a9c41d07be655", "deletes its files for good"]],
  },
  ...RUN_COMMANDS,
  ...KEPT_COMMANDS,
  TASK_COMMAND,
  ...BLUEPRINT_COMMANDS,
  {
    name: "reap",
    summary: "remove what dead processes left behind",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [
      { name: "dry-run", short: "n", help: "only print what would be removed" },
      {
        name: "cache",
        value: "size",
        isOptional: true,
        help: "also shrink the caches of checkouts and clones to this size; without a size: to what is in use",
      },
      { ...BACKEND_FLAG, help: "only this backend (default: all)" },
      ...all,
    ],
    notes: ["Never touches a sandbox that is kept or in use. Exits with 1 if something could not be removed."],
    examples: [
      ["glovebox reap --dry-run", "look first"],
      ["glovebox reap", "clean up"],
      ["glovebox reap --cache 5g", "and keep at most 5 GiB of checkouts and clones"],
    ],
  },
  {
    name: "doctor",
    summary: "report what works on this machine, what doesn't, and how to fix it",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [
      {
        name: "conformance",
        value: "backend",
        offers: "backends",
        help: "run the conformance kit on a backend and print the table",
      },
      { name: "only", value: "ids", help: "with --conformance: only these cases or groups, for example exec,files" },
      ...all,
    ],
    notes: ["Exits with 0 if the default backend works, or the tested backend conforms; else with 1."],
    examples: [
      ["glovebox doctor", "before your first sandbox, or when one does not open"],
      ["glovebox doctor --conformance local", "check every promise of a backend"],
      ["glovebox doctor --conformance ./my-backend.mjs", "your own backend"],
    ],
  },
  {
    name: "prepare",
    summary: "build a snapshot at a service, so that sandboxes start with your tools installed",
    operands: "<name>",
    argv: "none",
    operandCount: [1, 1],
    flags: [BACKEND_FLAG, ...all],
    notes: [
      "Needed once per account: for example harness-node22 has Node 22, pnpm, the agents' command lines and gh.",
      "If the snapshot exists, nothing changes.",
    ],
    examples: [["glovebox prepare harness-node22 --backend <backend>", "then name it in the backend's options"]],
  },
  {
    name: "completion",
    summary: "print the completion script for a shell",
    operands: "bash|zsh|fish",
    argv: "none",
    operandCount: [1, 1],
    offers: [["bash", "zsh", "fish"]],
    flags: all,
    examples: [
      ["source <(glovebox completion bash)", "in ~/.bashrc"],
      ["source <(glovebox completion zsh)", "in ~/.zshrc, after compinit"],
      ["glovebox completion fish > ~/.config/fish/completions/glovebox.fish", "once"],
    ],
  },
  {
    name: "version",
    summary: "print the version",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: all,
    examples: [["glovebox version --json", "with the versions of Node and the system"]],
  },
  {
    name: "help",
    summary: "show the help of a verb",
    operands: "[verb]",
    argv: "none",
    operandCount: [0, 1],
    flags: all,
    examples: [["glovebox help exec", "the same as glovebox exec --help"]],
  },
];
