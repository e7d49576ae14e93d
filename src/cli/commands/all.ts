import { BLUEPRINT_COMMANDS } from "./blueprint-commands.js";
import type { CliCommand } from "./command.js";
import { BACKEND_FLAG, type Flag, HELP_FLAG, JSON_FLAG, SANDBOX_FLAGS } from "./flags.js";
import { KEPT_COMMANDS } from "./kept-commands.js";
import { RUN_COMMANDS } from "./run-commands.js";
import { TASK_COMMAND } from "./task-command.js";

const all: readonly Flag[] = [JSON_FLAG, HELP_FLAG];

/** Every verb, in the order of the help. */
export const COMMANDS: readonly CliCommand[] = [
  {
    name: "exec",
    summary: "run a command in a sandbox, which is gone afterwards",
    operands: "-- command [argument…]",
    argv: "required",
    operandCount: [0, 0],
    flags: [...SANDBOX_FLAGS, { name: "raw", help: "let the output through to the terminal as it is" }, ...all],
    notes: [
      "The exit code is the command's: 128+n when signal n ended it, 126 when it cannot be executed,",
      "127 when it is not there. 124: it was ended at its --timeout. 2: the line cannot be understood.",
      "1: Glovebox itself failed, with a line `glovebox: …` on stderr. 130, 143, 129: this program got",
      "SIGINT, SIGTERM, SIGHUP. 141: nobody reads the output any more. 125 is never ours.",
      "The command reads your stdin when that is a file or a pipe, not when it is a terminal.",
      "On a terminal, what could drive it (escape sequences, \\r, bidi) is shown as text, unless --raw.",
      "Into a file or a pipe every byte goes as it is.",
      "A --repo elsewhere that asks for a token gets GLOVEBOX_TOKEN; one on GitHub also GITHUB_TOKEN or GH_TOKEN.",
    ],
    examples: [
      ["glovebox exec -- echo hello", "an empty sandbox, no network"],
      ["glovebox exec --repo . --branch fix -- npm test", "a worktree of this repository"],
      ["glovebox exec --repo https://github.com/acme/widgets -- ls", "a clone, kept up to date; or acme/widgets"],
      ["glovebox exec --repo . --workspace overlay --keep -- npm test", "ready at once, whatever the size"],
      ["glovebox exec --network allow=packages.example.org -- npm ci", "this name and no other"],
      ["glovebox exec --backend docker --image debian:bookworm-slim -- id", "in a container"],
      ["glovebox exec --memory 512m --timeout 30s -- node script.js", "bounded"],
      ["glovebox exec --json -- uname -a", "the result as JSON"],
      ["glovebox exec --keep -- sh -c 'echo 1 > a'", "leaves the files; then: exec --id <id> -- cat a"],
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
      "Starts bash when it is there, else sh; or the command after --. Needs a terminal.",
      "A terminal is raw by nature: what runs inside can write escape sequences to yours. When the shell",
      "ends, the modes that it may have left behind are reset. Use exec for what you do not trust to look at.",
      "It is the one verb without --json: a terminal is no place for a document. exec --json has one.",
    ],
    examples: [
      ["glovebox shell", "look around in an empty sandbox"],
      ["glovebox shell --repo . --network full", "work on this repository, with the network"],
      ["glovebox shell --id <id>", "back in a kept sandbox"],
    ],
  },
  {
    name: "ls",
    summary: "list the sandboxes that there are",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [{ name: "quiet", short: "q", help: "only the ids" }, ...all],
    examples: [
      ["glovebox ls", "what is in use, kept or left over"],
      ["glovebox ls --json", "the same for a program"],
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
    notes: ["One that a process has open is refused: end that process first."],
    examples: [["glovebox rm 3f2a9c41d07be655", "the files are gone for good"]],
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
      { name: "dry-run", short: "n", help: "only tell what would be removed" },
      {
        name: "cache",
        value: "size",
        isOptional: true,
        help: "also shrink the caches of checkouts and clones to this size; alone: to what is in use",
      },
      BACKEND_FLAG,
      ...all,
    ],
    notes: ["Never touches what is kept or in use. The exit code is 1 when something could not be removed."],
    examples: [
      ["glovebox reap --dry-run", "look first"],
      ["glovebox reap", "clean up"],
      ["glovebox reap --cache 5g", "and keep at most 5 GiB of checkouts and clones"],
    ],
  },
  {
    name: "doctor",
    summary: "say what holds on this machine, what does not, and what mends it",
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
      { name: "only", value: "ids", help: "with --conformance: these cases or groups, for example exec,files" },
      ...all,
    ],
    notes: ["The exit code is 0 when the default backend works, or when the backend conforms; else 1."],
    examples: [
      ["glovebox doctor", "before the first sandbox, or when one does not open"],
      ["glovebox doctor --conformance local", "hold a backend to every promise"],
      ["glovebox doctor --conformance ./my-backend.mjs", "also one of your own"],
    ],
  },
  {
    name: "prepare",
    summary: "build a prepared snapshot at a service, for sandboxes that start ready",
    operands: "<name>",
    argv: "none",
    operandCount: [1, 1],
    flags: [BACKEND_FLAG, ...all],
    notes: [
      "Once for an account: for example harness-node22 with Node 22, pnpm, the agents' command lines and gh.",
      "One that is already there is left as it is.",
    ],
    examples: [["glovebox prepare harness-node22 --backend <backend>", "then name it in the backend's options"]],
  },
  {
    name: "completion",
    summary: "print the completion script of a shell",
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
    examples: [["glovebox version --json", "with Node and the system"]],
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
