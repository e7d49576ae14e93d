import type { AgentFailure, TokenUsage } from "./report-types.js";

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
}

/** The command that a driver wants to be run. The prompt goes by stdin: no limit of length, and nobody sees it in `ps`. */
export interface AgentCommand {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin: string;
}

/** Something that an agent said about its work while it ran. */
export type AgentSignal =
  | { readonly type: "session"; readonly sessionId: string; readonly model?: string }
  | { readonly type: "message"; readonly text: string }
  | { readonly type: "tool_call"; readonly tool: string; readonly summary: string }
  | { readonly type: "tool_result"; readonly tool?: string; readonly isError: boolean }
  | { readonly type: "turn" }
  /** All that was used so far, not since the last time. */
  | { readonly type: "usage"; readonly usage: TokenUsage; readonly costUsd?: number }
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

/** One coding agent: how it is called, and how its output is read. Pure; the harness runs the process. */
export interface AgentDriver {
  readonly name: string;
  /** Whether the agent says what it costs. Without that, a cost limit is refused. */
  readonly reportsCost: boolean;
  /** Hosts that it must reach, for example its API. */
  readonly network: readonly string[];
  /** Variables that it needs; of each group one is enough. */
  readonly secrets: readonly (readonly string[])[];
  /** What its CLI has no way to do; asking for it is refused before the run. */
  readonly cannot?: readonly ("tools" | "continue")[];
  /** Prints the version; run in the sandbox before the first node. Absent: presence is not checked. */
  readonly versionArgv?: readonly string[];
  /** The oldest version that the driver supports. */
  readonly minVersion?: string;
  /** How to bring the program into a sandbox, for the message when it is missing. */
  readonly installHint: string;
  command(request: AgentRequest): AgentCommand;
  reader(): AgentReader;
}
