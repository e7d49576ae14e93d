import type { Turn } from "./turn.js";

/** One event of a stream: its name, where the protocol has names, and its data. */
export interface StreamEvent {
  readonly event?: string;
  readonly data: unknown;
}

/** What a request to the model says, whatever the protocol. */
export interface Asked {
  readonly model: string;
  readonly isStream: boolean;
  /** Names of the tools that the client offers. */
  readonly tools: readonly string[];
  /** All text that the client sends, newest last: instructions, prompts, results of tools. */
  readonly texts: readonly string[];
}

/** How a request and its answer are written. */
export interface Protocol {
  readonly name: "anthropic" | "responses" | "chat" | "gemini" | "code assist";
  readonly path: RegExp;
  /** Throws what is wrong with the request. */
  read(body: Record<string, unknown>, path: string): Asked;
  stream(turn: Turn, model: string): StreamEvent[];
  whole(turn: Turn, model: string): unknown;
  error(status: number, message: string): unknown;
  /** What the last line of a stream is, beside its events. */
  readonly end?: string;
}

/** A field that has to be there. */
export function need(body: Record<string, unknown>, field: string, type: "string" | "array" | "number"): unknown {
  const value = body[field];
  const isThere = type === "array" ? Array.isArray(value) : typeof value === type;
  if (!isThere) throw new Error(`${field} is ${JSON.stringify(value)?.slice(0, 80)}, not of type ${type}`);
  return value;
}

/** A field that has to be a list of objects. */
export function needList(body: Record<string, unknown>, field: string): Record<string, unknown>[] {
  const list = need(body, field, "array") as unknown[];
  for (const item of list) {
    if (typeof item !== "object" || item === null) throw new Error(`${field} has an item that is no object`);
  }
  return list as Record<string, unknown>[];
}

/** All texts in a value, in their order. */
export function textsIn(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== "object" || value === null) return [];
  const record = value as Record<string, unknown>;
  return ["text", "content", "output", "input", "parts", "response", "functionResponse"].flatMap((key) =>
    textsIn(record[key]),
  );
}
