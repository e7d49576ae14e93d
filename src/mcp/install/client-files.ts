import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

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
  /** Default: the user's home. The variables by which clients are told of other places, such as `CODEX_HOME`, count only without it. */
  readonly home?: string;
  /** Default: the current directory. */
  readonly project?: string;
  /** Change nothing, and only report what would be. Default false. */
  readonly dryRun?: boolean;
}

/** What is written for a server. */
export interface WrittenEntry {
  /** Written anew each time. */
  readonly own: Readonly<Record<string, unknown>>;
  /** Written unless the user has another value there. */
  readonly usual?: Readonly<Record<string, unknown>>;
}

/** How a client is configured. */
export interface ClientFile {
  readonly kind: "json" | "toml";
  /** The keys that lead to the servers. */
  readonly keys: readonly string[];
  /** The file, and the folder that it must really be below. */
  place(options: InstallOptions): { file: string; below: string };
  /** What stands for the server. */
  entry(entry: ClientEntry): WrittenEntry;
}

const stdio = ({ command, args }: ClientEntry): WrittenEntry => ({ own: { type: "stdio", command, args } });
const plain = ({ command, args }: ClientEntry): WrittenEntry => ({ own: { command, args } });

/** Where a client has the user's configuration. */
interface UserPlace {
  /** Its folder in the home. */
  readonly folder: readonly string[];
  /** The variable that names another folder instead. */
  readonly variable?: string;
  readonly file: readonly string[];
}

function places({ folder, variable = "", file }: UserPlace, project: readonly string[]): ClientFile["place"] {
  return ({ scope = "user", home, project: here = process.cwd() }) => {
    if (scope === "project") return { file: join(here, ...project), below: here };
    const other = home === undefined ? process.env[variable] : undefined;
    if (other !== undefined && isAbsolute(other)) return { file: join(other, ...file), below: other };
    const below = home ?? homedir();
    return { file: join(below, ...folder, ...file), below };
  };
}

function codePlace(): UserPlace {
  const file = ["Code", "User", "mcp.json"];
  if (process.platform === "darwin") return { folder: ["Library", "Application Support"], file };
  if (process.platform === "win32") return { folder: ["AppData", "Roaming"], variable: "APPDATA", file };
  return { folder: [".config"], variable: "XDG_CONFIG_HOME", file };
}

/** The configuration of each client. */
export const CLIENT_FILES: Readonly<Record<ClientName, ClientFile>> = {
  "claude-code": {
    kind: "json",
    keys: ["mcpServers"],
    place: places({ folder: [], variable: "CLAUDE_CONFIG_DIR", file: [".claude.json"] }, [".mcp.json"]),
    entry: stdio,
  },
  codex: {
    kind: "toml",
    keys: ["mcp_servers"],
    place: places({ folder: [".codex"], variable: "CODEX_HOME", file: ["config.toml"] }, [".codex", "config.toml"]),
    // It waits 10 seconds for a server to start unless it is told to wait longer.
    entry: ({ command, args }) => ({
      own: { command, args },
      usual: { startup_timeout_sec: 30, tool_timeout_sec: 60 },
    }),
  },
  cursor: {
    kind: "json",
    keys: ["mcpServers"],
    place: places({ folder: [".cursor"], file: ["mcp.json"] }, [".cursor", "mcp.json"]),
    entry: plain,
  },
  vscode: {
    kind: "json",
    keys: ["servers"],
    place: places(codePlace(), [".vscode", "mcp.json"]),
    entry: stdio,
  },
  gemini: {
    kind: "json",
    keys: ["mcpServers"],
    place: places({ folder: [".gemini"], file: ["settings.json"] }, [".gemini", "settings.json"]),
    entry: plain,
  },
  opencode: {
    kind: "json",
    keys: ["mcp"],
    place: places({ folder: [".config"], variable: "XDG_CONFIG_HOME", file: ["opencode", "opencode.json"] }, [
      "opencode.json",
    ]),
    entry: ({ command, args }) => ({
      own: { type: "local", command: [command, ...args] },
      usual: { enabled: true },
    }),
  },
};
