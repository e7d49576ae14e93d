import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { driverOf } from "../../../src/harness/agents.js";
import type { AgentDriver, AgentSignal, AgentTask, AgentVerdict } from "../../../src/harness/types.js";

/** The driver of a built-in agent. */
export function driverNamed(agent: string, more: Partial<AgentTask> = {}): AgentDriver {
  return driverOf({ agent, prompt: "p", network: { allow: [] }, limits: {}, ...more });
}

/** Feeds what a program of a known version printed, and how it ended. */
export function replayAgent(
  agent: string,
  lines: string | readonly unknown[],
  exitCode = 0,
): { signals: AgentSignal[]; verdict: AgentVerdict } {
  const reader = driverNamed(agent).reader();
  const texts = typeof lines === "string" ? recorded(lines) : lines.map((line) => JSON.stringify(line));
  const signals = texts.flatMap((line) => [...reader.line(line)]);
  const last = signals.find((signal) => signal.type === "result");
  return { signals, verdict: last?.result ?? reader.end({ exitCode, stderr: "" }) };
}

/** The signals of one type. */
export function signalsOf<T extends AgentSignal["type"]>(
  signals: readonly AgentSignal[],
  type: T,
): Extract<AgentSignal, { type: T }>[] {
  return signals.filter((signal): signal is Extract<AgentSignal, { type: T }> => signal.type === type);
}

function recorded(name: string): string[] {
  const path = fileURLToPath(new URL(`../../fixtures/agents/${name}.jsonl`, import.meta.url));
  return readFileSync(path, "utf8").trimEnd().split("\n");
}
