import type {
  CheckResult,
  LimitHit,
  NodeKind,
  NodeReport,
  PushResult,
  RunError,
  RunReport,
  RunStatus,
  TokenUsage,
} from "./report-types.js";

/** Where a piece of output comes from. `transcript` is the machine-readable stream of an agent. */
export type OutputStream = "stdout" | "stderr" | "transcript";

/** A piece of what a node prints, redacted. It ends with a whole character. */
export interface NodeOutput {
  nodeId: string;
  parentId?: string;
  checkId?: string;
  stream: OutputStream;
  bytes: Uint8Array;
}

/** What happened, before it is numbered and dated. All text in it is redacted. */
export type RunEventBody =
  | { type: "run.started"; blueprint: string; repo: string; intent: string; nodes: { id: string; kind: NodeKind }[] }
  | { type: "sandbox.creating"; backend: string }
  | { type: "sandbox.ready"; backend: string; sandboxId: string; workDir: string }
  | { type: "sandbox.lost"; message: string }
  | { type: "sandbox.destroyed"; kept: boolean }
  | { type: "node.started"; nodeId: string; parentId?: string; name: string; kind: NodeKind; attempt: number }
  | { type: "node.skipped"; nodeId: string; parentId?: string; name: string; kind: NodeKind; reason: string }
  /** A piece of output as it came; cut at no particular place, but never within a character. */
  | { type: "node.output"; nodeId: string; parentId?: string; stream: OutputStream; text: string; checkId?: string }
  | { type: "node.finished"; nodeId: string; parentId?: string; result: NodeReport }
  | { type: "agent.version"; agent: string; version: string }
  | { type: "agent.message"; nodeId: string; parentId?: string; text: string }
  | { type: "agent.tool_call"; nodeId: string; parentId?: string; tool: string; summary: string }
  | { type: "agent.tool_result"; nodeId: string; parentId?: string; tool?: string; isError: boolean }
  | {
      type: "agent.usage";
      nodeId: string;
      parentId?: string;
      usage: TokenUsage;
      costUsd: number | null;
      turns: number;
    }
  | { type: "gate.check"; nodeId: string; round: number; check: CheckResult }
  | { type: "retry.scheduled"; nodeId: string; parentId?: string; reason: string; delayMs: number; attempt: number }
  /** Four fifths of a limit of the run are used. */
  | { type: "limit.warning"; limit: LimitHit["limit"]; nodeId: string; allowed: number; used: number }
  | ({ type: "limit.hit" } & LimitHit)
  | { type: "checkpoint.saved"; nodeId: string; snapshotId?: string }
  | { type: "warning"; message: string; nodeId?: string }
  | { type: "push.finished"; result: PushResult }
  | { type: "run.finished"; status: RunStatus; exitCode: number; error?: RunError; totalDurationMs: number };

/** An event as it is in `events.jsonl`: numbered without gaps from 1, dated, named after its run. */
export type RunEvent = { v: 1; seq: number; ts: string; runId: string } & RunEventBody;

/** Takes the events of a run in their order. Awaited, so that a slow sink slows the run and does not fill the memory. */
export type EventSink = (event: RunEventBody) => void | Promise<void>;

/** Watches a run. Each method may be missing; one that throws is a warning and never ends the run. */
export interface Reporter {
  nodeStart?(name: string, kind: NodeKind): void | Promise<void>;
  /** All that a node prints, as text. */
  nodeOutput?(name: string, chunk: string): void | Promise<void>;
  /** The same as bytes, which for a long log costs far less. */
  nodeBytes?(output: NodeOutput): void | Promise<void>;
  nodeComplete?(name: string, result: NodeReport): void | Promise<void>;
  runComplete?(report: RunReport): void | Promise<void>;
  /** Every event, also those that have a method of their own. */
  event?(event: RunEvent): void | Promise<void>;
}
