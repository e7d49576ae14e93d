import type { Sandbox } from "../../sandbox/types.js";
import type { AgentFailure, SessionTotals, TokenUsage } from "./report-types.js";

/** What a driver needs to know to write the command line of its agent. */
export interface AgentRequest {
  readonly prompt: string;
  readonly systemPrompt?: string;
  readonly model?: string;
  /** What the agent may use without asking, in the words of its own CLI. Absent: everything. */
  readonly tools?: readonly string[];
  /** A session to continue. */
  readonly sessionId?: string;
  /** What is left to spend. Handed to the agent's own flag where it has one; the harness watches too. */
  readonly maxCostUsd?: number;
  readonly maxTurns?: number;
  /** The variables that it gets, without its secrets. */
  readonly env?: Readonly<Record<string, string>>;
  /** More arguments of its program, in the words of its own CLI. */
  readonly args?: readonly string[];
  /** MCP servers that it starts, by their names. */
  readonly mcp?: Readonly<Record<string, AgentMcpServer>>;
  /** Variables with secrets that its node names, and that these servers get, too. Only the names: the agent has the values. */
  readonly secretNames?: readonly string[];
}

/** An MCP server: a program in the sandbox that an agent starts and talks with by stdin and stdout. */
export interface AgentMcpServer {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The command that a driver wants to be run. The prompt goes by stdin: no limit of length, and nobody sees it in `ps`. */
export interface AgentCommand {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: string;
  /** Files that it needs, by their path below HOME. They take the place of what is there. */
  readonly homeFiles?: Readonly<Record<string, string>>;
}

/** Something that an agent said about its work while it ran. */
export type AgentSignal =
  | { readonly type: "session"; readonly sessionId: string; readonly model?: string }
  | { readonly type: "message"; readonly text: string }
  | { readonly type: "tool_call"; readonly tool: string; readonly summary: string }
  | { readonly type: "tool_result"; readonly tool?: string; readonly isError: boolean }
  | { readonly type: "turn" }
  /** All that this run of the agent has used so far, as far as it says. `session` has all of its session, where the agent counts that. */
  | {
      readonly type: "usage";
      readonly usage?: TokenUsage;
      readonly costUsd?: number;
      /** Whether it used something whose price it doesn't know: a limit of cost can't be watched then. */
      readonly isUnpriced?: boolean;
      readonly session?: SessionTotals;
    }
  /** It works, and says nothing that is worth an event. */
  | { readonly type: "alive" }
  /** The result: after it the agent has a short time to end, and is then killed. */
  | { readonly type: "result"; readonly result: AgentVerdict };

/** How an agent says that it ended. */
export interface AgentVerdict {
  readonly isError: boolean;
  /** Its final answer, or what went wrong. */
  readonly text: string;
  readonly failure?: AgentFailure;
  /** A limit of its own that it stopped at. */
  readonly limit?: "cost" | "turns";
  readonly terminalReason?: string;
  readonly turns?: number;
}

/** Reads the output of one run of an agent, line by line. */
export interface AgentReader {
  /** A line of stdout, without its end. A line that is not understood gives no signals. */
  line(text: string): readonly AgentSignal[];
  /** Called once after the end; the verdict when no `result` signal came. `stderr` is supporting text only. */
  end(exit: { exitCode: number; signal?: string; stderr: string }): AgentVerdict;
}

/** Where the value of an agent's variable goes. */
export interface AgentKey {
  /** `name`, or `name:port`. Absent: only `baseUrl` says it. */
  readonly host?: string;
  /** More hosts of the same service, which no base URL replaces. */
  readonly otherHosts?: readonly string[];
  /** Why it is not known where it goes; it is inside then. */
  readonly unknown?: string;
  /** The header that has it. Of keys that sign, there is none. */
  readonly header?: string;
  /** `aws`: it is half of a pair of keys by which requests are signed. */
  readonly sign?: "aws";
  /** Variables without which it is no use; they stay outside with it, or go inside with it. */
  readonly with?: readonly string[];
  /** The same, where they are set. */
  readonly maybeWith?: readonly string[];
  /** What the agent expects its value to start with. */
  readonly prefix?: string;
  /** The variable that names another address, which then takes the place of `host`. */
  readonly baseUrl?: string;
  /** The variable with a configuration from which `host` was taken. If it is made while the run goes on, the host is not known. */
  readonly config?: string;
}

/** What an agent needs to reach its models. */
export interface AgentAccess {
  /** Hosts that it must reach, for example its API. */
  readonly network: readonly string[];
  /** Variables that it needs; of each group one is enough. */
  readonly secrets: readonly (readonly string[])[];
  /** Where their values go. Those of which this is known stay outside of the sandbox where the backend can keep them there. */
  readonly keys?: Readonly<Record<string, AgentKey>>;
  /** Files below HOME that can have a login, in place of those variables, each with the hosts that it needs besides. */
  readonly logins?: Readonly<Record<string, readonly string[]>>;
}

/** What a node says about the service of its models. */
export interface AgentSetting {
  readonly env: Readonly<Record<string, string>>;
  readonly model?: string;
  /** The texts of the files that the blueprint declares for HOME, where they were read. */
  readonly home?: Readonly<Record<string, string>>;
}

/** Another service by which an agent reaches its models, such as Bedrock. */
export interface AgentProvider {
  readonly name: string;
  /** How a node chooses it, for a message: `the variable X`. */
  readonly by?: string;
  isChosen(setting: AgentSetting): boolean;
  access(setting: AgentSetting): AgentAccess;
}

/** What a driver has that talks with its agent: the agent's stdin, and the sandbox around it. */
export interface AgentHost {
  readonly sandbox: Pick<Sandbox, "workDir" | "readFile" | "stat" | "writeFile" | "spawn">;
  /** The absolute directory in which the agent runs. */
  readonly cwd: string;
  /** The variables of the node, without its secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Writes a line to the agent. An agent that doesn't read what it is sent is killed. */
  send(line: string): void;
}

/** A conversation with one run of an agent, for protocols with more than a prompt and an answer. */
export interface AgentDialog extends AgentReader {
  /** Called once when the agent runs. */
  start(): void;
  /** Called instead of `line` when a line was too long to be read. */
  overlong(): readonly AgentSignal[];
  /** Asks the agent to stop; it is killed soon after. */
  cancel(): void;
  /** Called once when the agent has ended: ends what was started for it in the sandbox. */
  close(): Promise<void>;
}

/** One coding agent: how it is called, and how its output is read. Pure; the harness runs the process. */
export interface AgentDriver extends AgentAccess {
  readonly name: string;
  /** Whether the agent says what it costs. Without that, a cost limit is refused. */
  readonly reportsCost: boolean;
  /** Services that a node can choose in place of its own; the first that is chosen counts. */
  readonly providers?: readonly AgentProvider[];
  /** Whether it starts the MCP servers of a request. Without that, `mcp` is refused before the run. */
  readonly startsMcp?: boolean;
  /** What its CLI has no way to do; asking for it is refused before the run. */
  readonly cannot?: readonly ("tools" | "continue")[];
  /** Prints the version; run in the sandbox before the first node. Absent: presence is not checked. */
  readonly versionArgv?: readonly string[];
  /** The oldest version that the driver supports. */
  readonly minVersion?: string;
  /** How to bring the program into a sandbox, for the message when it is missing. */
  readonly installHint: string;
  /** The versions that the tests run, the oldest first. An older one gives a warning; a newer one may work as well. */
  readonly tried?: readonly string[];
  /** Folders and files below HOME that have its sessions, and no credentials: they are saved with the checkpoints of a run. */
  readonly sessionFolders?: readonly string[];
  /** Whether it finds a session only in a work directory of the same path. Default false. */
  readonly sessionsOfWorkDir?: boolean;
  command(request: AgentRequest): AgentCommand;
  /** `before` is what the session that it continues had used, as far as that is known. */
  reader(before?: SessionTotals): AgentReader;
  /** For an agent that is talked with while it runs; in place of `reader`. The stdin of its command is then not used. */
  dialog?(request: AgentRequest, host: AgentHost): AgentDialog;
}
