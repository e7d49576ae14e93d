import type { Sandbox } from "../../sandbox/types.js";
import type { Value } from "../expression.js";
import type {
  AgentReport,
  CommandSetting,
  NodeReport,
  NodeStatus,
  OutputStream,
  RetryPolicy,
  RunError,
  RunEventBody,
  Text,
} from "../node-types.js";
import type { AgentTask } from "./agent-task.js";
import type { RunnableSpec } from "./runnable.js";

/** What a kind of node sees of the run. */
export interface RunView {
  readonly sandbox: Sandbox;
  /** Aborted when the run is cancelled or its time is over. */
  readonly signal: AbortSignal;
  /** Why the run must end now; undefined when it need not. */
  readonly stopped: "cancelled" | "wall" | undefined;
  sandboxLost: boolean;
  emit(event: RunEventBody): Promise<void>;
  /** Text without secrets, cut to a bound after that. */
  hide(text: string, maxBytes?: number): string;
}

/** What the engine does for a kind while one of its nodes runs. */
export interface NodeRun {
  readonly state: RunView;
  /** Runs a program, a script or a function to its end. Never throws. */
  step(step: Step, ids: { nodeId: string; checkId?: string }): Promise<StepOutcome & PrintedOutput>;
  /** Runs an agent to its end or to its limits. Never throws. */
  agent(job: AgentJob): Promise<AgentOutcome>;
  /** Runs a part of a node that is a node of its own in the report. */
  child(
    node: Pick<NodeReport, "id" | "name" | "kind">,
    opts: { readonly retry: RetryPolicy; readonly parentId: string },
    run: () => Promise<NodeOutcome>,
  ): Promise<NodeReport>;
  /** Passes text on as the output of a node; gives what is kept of it. */
  print(nodeId: string, stream: OutputStream, text: string): Promise<PrintedOutput>;
  /** Renders the message of a commit: what a template fills in notifies nobody, closes nothing and shows all it has. */
  renderMessage(text: Text): Promise<string>;
}

/** One thing to run. */
export interface Step extends Readonly<RunnableSpec> {
  readonly timeout?: number;
  readonly cwd?: string;
  readonly env: Readonly<Record<string, Text>>;
  readonly secrets: readonly string[];
}

/** What became of a step. */
export interface StepOutcome extends CommandSetting {
  status: NodeStatus;
  exitCode?: number;
  timedOut?: boolean;
  error?: RunError;
  command?: string;
  /** In place of what the step printed. */
  output?: string;
}

/** Head and tail of what was printed. */
export interface PrintedOutput {
  output: string;
  outputTruncated: boolean;
}

/** What a node's own run adds to its report. */
export type NodeOutcome = StepOutcome & Partial<NodeReport>;

/** More names for the templates of one place, by group. */
export type MoreNames = Readonly<Record<string, Readonly<Record<string, Value>>>>;

/** An agent to be run for a node. */
export interface AgentJob extends Pick<Step, "env" | "secrets" | "cwd" | "timeout"> {
  readonly task: AgentTask;
  readonly nodeId: string;
  /** The node that this one is a child of. */
  readonly parentId?: string;
  readonly more?: MoreNames;
}

/** What an agent did. */
export interface AgentOutcome extends StepOutcome {
  agent: AgentReport;
  output: string;
}
