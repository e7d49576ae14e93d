import type { Sandbox } from "../sandbox/types.js";
import type { JsonSchema, Schema } from "../util/schema.js";

/** What a client may assume about a tool before it calls it. */
export interface ToolHints {
  readonly readOnly: boolean;
  readonly destructive: boolean;
  readonly idempotent: boolean;
  /** Whether it may reach something outside the sandbox. */
  readonly openWorld: boolean;
}

/** One call of a tool. */
export interface ToolCall {
  /** Whose sandboxes it may use. */
  readonly owner: string;
  /** Aborted when the client cancels the call or goes away. */
  readonly signal: AbortSignal;
  /** When the answer must be out, on the clock of `performance.now()`: before every known client gives up. */
  readonly deadline: number;
  /** What the user answered; undefined if nobody was asked. */
  readonly consent: "yes" | "no" | undefined;
  /** Whether the client can ask its user. */
  readonly canAsk: boolean;
  /** The sandbox of the call; opened if it is the first one. */
  sandbox(): Promise<Sandbox>;
  /** Says what the call is doing; the client hears of it now and then. */
  report(what: string): void;
}

/** What a tool answers: text for the model, and the same as fields for programs. */
export interface ToolAnswer {
  readonly text: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly image?: { readonly data: string; readonly mimeType: string };
}

/** What the user must be asked before the tool does its work. The call is then made again, with the answer. */
export interface ToolQuestion {
  readonly question: string;
}

/** One tool of the server. */
export interface Tool<T = unknown> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Schema<T>;
  /** The fields of its answer. */
  readonly output: JsonSchema;
  /** Whether its answer is text that should reach the model as it is: fields are then sent only if the user asked for them. */
  readonly isText: boolean;
  readonly hints: ToolHints;
  /** Whether it works in a sandbox, which `sandbox_id` names when there are several. */
  readonly usesSandbox: boolean;
  run(input: T, call: ToolCall): Promise<ToolAnswer | ToolQuestion>;
}

/** Makes a tool, and forgets the type of its input. */
export function defineTool<T extends object>(tool: Tool<T>): Tool {
  return tool as unknown as Tool;
}

export const READS: ToolHints = { readOnly: true, destructive: false, idempotent: true, openWorld: false };
export const CHANGES: ToolHints = { readOnly: false, destructive: true, idempotent: false, openWorld: false };
