/** What a node does. */
export type NodeKind = "command" | "agent" | "gate" | "commit";

/** Why an agent failed. The first three are infrastructure and may be tried again; the others never are. */
export type AgentFailure =
  | "rate_limit"
  | "network"
  | "crash"
  | "unauthenticated"
  | "quota"
  | "refused"
  | "agent_error"
  | "no_result";

/** How a node ended. `limit`: it was stopped at a limit, and what it had done is kept. */
export type NodeStatus = "success" | "failure" | "skipped" | "cancelled" | "limit";

/** How a run ended. `error`: the harness or the sandbox failed, not the code that was worked on. */
export type RunStatus = "success" | "failed" | "no_changes" | "limit" | "cancelled" | "error";

/** Tokens that agents used. */
export interface TokenUsage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** What a session has used in all runs of its agent, as the agent counts it. */
export interface SessionTotals {
  usage: TokenUsage;
  costUsd?: number;
}

/** A failure as data. */
export interface RunError {
  /** A code of `SandboxError`, a cause of an agent's failure, or `command_failed`, `timed_out`, `gate_failed`, `node_threw`. */
  code: string;
  message: string;
  /** Whether the cause is the infrastructure, so that a retry may succeed. */
  retryable: boolean;
  hint?: string;
}

/** What an agent did in a node. Turns, tokens and cost are those of all its tries. */
export interface AgentReport {
  name: string;
  version?: string;
  model?: string;
  sessionId?: string;
  turns?: number;
  usage?: TokenUsage;
  /** Null when the agent does not say. */
  costUsd: number | null;
  /** Of all nodes that continued the same session, where the agent counts that. */
  session?: SessionTotals;
  terminalReason?: string;
  failure?: AgentFailure;
}

/** What a command that failed was given beside its words, to run it again. */
export interface CommandSetting {
  /** Relative to the work directory, or absolute. */
  cwd?: string;
  /** The variables that the run and the node set. */
  env?: Record<string, string>;
  /** The names of those whose values are secret, or too long for a report. */
  hiddenEnv?: string[];
}

/** One check of a gate, as it went the last time. */
export interface CheckResult extends CommandSetting {
  id: string;
  status: "success" | "failure" | "cancelled";
  exitCode?: number;
  durationMs: number;
  timedOut?: boolean;
  /** Head and tail, redacted. */
  output: string;
  /** The command line, to run it again in the sandbox. */
  command?: string;
  /** What may help, if it failed. */
  hint?: string;
}

/** What a node did. */
export interface NodeResult {
  status: NodeStatus;
  /** Head and tail of what it printed, or the final answer of an agent; redacted, 50 KiB at most. */
  output: string;
  durationMs: number;
  error?: RunError;
}

/** One try of a node. */
export interface NodeAttempt {
  attempt: number;
  status: NodeStatus;
  durationMs: number;
  error?: RunError;
  /** What an agent cost in it; null when the agent did not say. */
  costUsd?: number | null;
}

/** A node in the report. */
export interface NodeReport extends NodeResult, CommandSetting {
  id: string;
  name: string;
  kind: NodeKind;
  /** Which try this was; 1 unless infrastructure failed before. */
  attempt: number;
  /** All tries, when there was more than one. */
  attempts?: NodeAttempt[];
  /** ISO 8601. */
  startedAt: string;
  outputTruncated: boolean;
  exitCode?: number;
  /** Why it was skipped. */
  reason?: string;
  /** The command line, to run it again in the sandbox. */
  command?: string;
  /** True when it failed and the blueprint says that the run continues. */
  tolerated?: boolean;
  /** True when an earlier run did it and this one took over the result. */
  reused?: boolean;
  agent?: AgentReport;
  /** Of a gate: its checks as they went last. */
  checks?: CheckResult[];
  /** Of a gate: how many times an agent was asked to repair. */
  rounds?: number;
  /** Of a commit: its id. */
  commit?: string;
  /** Of a gate: the repairs. Their failure is not the run's: only the gate's own status counts. */
  children?: NodeReport[];
  /** Relative to the run directory; written by it. */
  stdoutPath?: string;
  stderrPath?: string;
}

/** A limit that a run reached. */
export interface LimitHit {
  limit: "wall" | "cost" | "turns" | "idle";
  nodeId: string;
  /** In milliseconds, dollars or turns. */
  allowed: number;
  used?: number;
}

/** What the agents of a run cost. */
export interface RunCost {
  /** Null when no agent ran whose price is known. */
  usd: number | null;
  /** Nodes whose agent did not say what it cost: `usd` is then a lower bound. */
  unpriced: string[];
}

/** How a secret got to the commands of a run. */
export interface SecretReport {
  name: string;
  /** `outside`: commands had a placeholder, and the value went to its hosts only. `inside`: commands could read it. */
  kept: "outside" | "inside";
  hosts?: string[];
  /** Why it went inside. */
  why?: string;
}

/** What became of the push. None of these is an exception. */
export type PushState =
  | "not_requested"
  | "not_allowed"
  | "no_token"
  | "no_changes"
  | "push_failed"
  | "pr_failed"
  | "ok";

/** The push and the pull request. */
export interface PushResult {
  pushed: boolean;
  prUrl?: string;
  error?: string;
  state?: PushState;
  draft?: boolean;
  /** True when a pull request of this branch was open already and is used. */
  existing?: boolean;
  /** Tree of the commit that the remote has now. */
  tree?: string;
  commit?: string;
}

/** What differs from the base. */
export interface ChangeSummary {
  files: { path: string; status: "added" | "modified" | "deleted" | "renamed" }[];
  insertions: number;
  deletions: number;
  /** Relative to the run directory. */
  patchPath?: string;
}

/** The report of a run: `report.json`. */
export interface RunReport {
  schemaVersion: 1;
  runId: string;
  blueprint: string;
  repo: string;
  intent: string;
  /** `running` until it is over; one whose process is gone stays so. */
  status: RunStatus | "running";
  /** What the process exits with. */
  exitCode: number;
  nodes: NodeReport[];
  startedAt: string;
  /** Absent while it runs. */
  finishedAt?: string;
  totalDurationMs: number;
  tokenUsage: TokenUsage;
  cost: RunCost;
  limitsHit: LimitHit[];
  push: boolean;
  branch?: string;
  base?: string;
  baseCommit?: string;
  headCommit?: string;
  /** Tree of the files that `changes` describes: the one that is pushed, and no other. */
  tree?: string;
  pushResult?: PushResult;
  changes?: ChangeSummary;
  sandbox?: { type: string; id: string; image?: string; kept: boolean };
  /** Absent: the run needed none. */
  secrets?: SecretReport[];
  error?: RunError;
  warnings: string[];
  version: string;
  resumedFrom?: string;
}
