import type { CliCommand } from "./command.js";
import { type Flag, HELP_FLAG, JSON_FLAG, SANDBOX_FLAGS } from "./flags.js";

/** Flags of one command, which the model gives itself. */
const OF_ONE_COMMAND: ReadonlySet<string> = new Set(["cwd", "user", "timeout"]);

/** The flags of `mcp` that concern the server, not its sandboxes. */
const SERVER_FLAGS: readonly Flag[] = [
  {
    name: "tools",
    value: "groups",
    help: "add groups of tools: browse, git, snapshot, ports, runs; with commas between them",
  },
  { name: "multi", help: "let the model make several sandboxes, and name them" },
  {
    name: "offer",
    value: "kind=value",
    repeat: true,
    help: "let the model choose this: backend=, image= or repo= with --multi, blueprint= with --tools runs; repeatable",
  },
  { name: "max-time", value: "time", help: "with --tools runs: time limit of one run, for example 45m" },
  { name: "max-cost", value: "usd", help: "with --tools runs: cost limit of one run in US dollars" },
  { name: "allow-push", help: "let the model push, with your token; the client asks you each time, if it can" },
  { name: "structured", help: "also answer as JSON fields; some clients then show the model only those" },
  { name: "ansi", help: "leave colours and other escape sequences in the output of commands" },
  { name: "max-output", value: "size", help: "text in one answer (default: 30000)" },
  { name: "max-sandboxes", value: "count", help: "sandboxes of one client at the same time (default: 8)" },
  { name: "http", value: "port", help: "serve over HTTP instead of stdin and stdout; 0 is any free port" },
  { name: "host", value: "address", help: "with --http: listen on this address (default: 127.0.0.1)" },
  {
    name: "token-file",
    value: "path",
    offers: "files",
    help: "with --http: a file with a token on each line (default: GLOVEBOX_MCP_TOKEN)",
  },
  { name: "allow-host", value: "name", repeat: true, help: "with --http: a further name of this server; repeatable" },
  { name: "allow-origin", value: "origin", repeat: true, help: "with --http: a web page that may call; repeatable" },
  { name: "rate", value: "count", help: "with --http: requests of one token in a second (default: 50)" },
];

const INSTALL_FLAGS: readonly Flag[] = [
  {
    name: "client",
    value: "name",
    offers: ["claude-code", "codex", "cursor", "vscode", "gemini", "opencode"],
    help: "with install: the client to configure",
  },
  {
    name: "scope",
    value: "which",
    offers: ["user", "project"],
    help: "with install: all your projects (default), or this one",
  },
  { name: "as", value: "name", help: "with install: the name of the server in the client (default: glovebox)" },
  { name: "remove", help: "with install: take the entry out again" },
  { name: "print", help: "with install: print what to add to the client's file by hand, and change nothing" },
  { name: "dry-run", help: "with install: print the file that would be changed, and change nothing" },
];

/** The verb that serves models. */
export const MCP_COMMAND: CliCommand = {
  name: "mcp",
  summary: "give a sandbox to a model: serve the Model Context Protocol",
  operands: "[install]",
  argv: "none",
  operandCount: [0, 1],
  offers: [["install"]],
  flags: [
    ...SANDBOX_FLAGS.filter(({ name }) => !OF_ONE_COMMAND.has(name)),
    ...SERVER_FLAGS,
    ...INSTALL_FLAGS,
    { ...JSON_FLAG, help: "with --http and with install: print one JSON document on stdout" },
    HELP_FLAG,
  ],
  notes: [
    "Serves one client on stdin and stdout until stdin ends, and then removes the sandbox. The sandbox is made at the",
    "model's first call. The flags decide what it may do; the model can't change them.",
    "mcp install writes the other flags into the client's configuration, never a secret: --env NAME passes a variable of",
    "the client's environment. It changes nothing that is there already, and follows no link.",
    "Over HTTP, every request needs `Authorization: Bearer <token>`, and sandboxes belong to their token.",
  ],
  examples: [
    ["glovebox mcp install --client claude-code --repo .", "a worktree of each project that you open"],
    ["glovebox mcp install --client codex --network allow=packages.example.org", "with some network"],
    ["glovebox mcp install --client codex --remove", "take it back"],
    ["glovebox mcp --repo . --tools browse,git", "what a client runs"],
    ["glovebox mcp --repo . --tools runs --offer blueprint=bug-fix", "let the model start runs of a blueprint"],
    ["GLOVEBOX_MCP_TOKEN=… glovebox mcp --http 8931", "for clients on this machine"],
  ],
};
