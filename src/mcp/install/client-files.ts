import { homedir } from "node:os";
import { join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";

/** The clients whose configuration is known. */
export const CLIENTS = ["claude-code", "codex", "cursor", "vscode", "gemini", "opencode"] as const;

/** The name of such a client. */
export type ClientName = (typeof CLIENTS)[number];

/** For which projects the server is. */
export type InstallScope = "user" | "project";

/** The server as a client starts it. */
export interface ClientEntry {
  /** Absolute path of the program. */
  readonly command: string;
  readonly args: readonly string[];
}

/** Where a client is told about the server. */
export interface InstallOptions {
  readonly client: ClientName;
  /** For all projects of the user, or for the one in the current directory. Default `user`. */
  readonly scope?: InstallScope;
  /** The name of the server in the client. Default `glovebox`. */
  readonly name?: string;
  /** Default: the user's home. */
  readonly home?: string;
  /** Default: the current directory. */
  readonly project?: string;
}

/** How a client is configured. */
export interface ClientFile {
  readonly kind: "json" | "toml";
  /** The keys that lead to the servers. */
  readonly keys: readonly string[];
  /** The file, and the folder that it must really be below. */
  place(options: InstallOptions): { file: string; below: string };
  /** What stands for the server. */
  entry(entry: ClientEntry): Readonly<Record<string, unknown>>;
}

const stdio = ({ command, args }: ClientEntry): Record<string, unknown> => ({ type: "stdio", command, args });
const plain = ({ command, args }: ClientEntry): Record<string, unknown> => ({ command, args });

function places(user: readonly string[], project: readonly string[] | undefined): ClientFile["place"] {
  return ({ client, scope = "user", home = homedir(), project: here = process.cwd() }) => {
    if (scope === "user") return { file: join(home, ...user), below: home };
    if (project !== undefined) return { file: join(here, ...project), below: here };
    throw new SandboxError("unsupported", `${client} has no configuration of single projects for servers`, {
      hint: "leave --scope project out",
    });
  };
}

function codeFolder(): string[] {
  if (process.platform === "darwin") return ["Library", "Application Support", "Code", "User"];
  return process.platform === "win32" ? ["AppData", "Roaming", "Code", "User"] : [".config", "Code", "User"];
}

/** The configuration of each client. */
export const CLIENT_FILES: Readonly<Record<ClientName, ClientFile>> = {
  "claude-code": { kind: "json", keys: ["mcpServers"], place: places([".claude.json"], [".mcp.json"]), entry: stdio },
  codex: {
    kind: "toml",
    keys: ["mcp_servers"],
    place: places([".codex", "config.toml"], [".codex", "config.toml"]),
    // It waits 10 seconds for a server to start unless it is told to wait longer.
    entry: ({ command, args }) => ({ command, args, startup_timeout_sec: 30, tool_timeout_sec: 60 }),
  },
  cursor: {
    kind: "json",
    keys: ["mcpServers"],
    place: places([".cursor", "mcp.json"], [".cursor", "mcp.json"]),
    entry: plain,
  },
  vscode: {
    kind: "json",
    keys: ["servers"],
    place: places([...codeFolder(), "mcp.json"], [".vscode", "mcp.json"]),
    entry: stdio,
  },
  gemini: {
    kind: "json",
    keys: ["mcpServers"],
    place: places([".gemini", "settings.json"], [".gemini", "settings.json"]),
    entry: plain,
  },
  opencode: {
    kind: "json",
    keys: ["mcp"],
    place: places([".config", "opencode", "opencode.json"], ["opencode.json"]),
    entry: ({ command, args }) => ({ type: "local", command: [command, ...args], enabled: true }),
  },
};
