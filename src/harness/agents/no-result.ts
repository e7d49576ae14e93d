import type { AgentVerdict } from "../types.js";
import { classifyFailure } from "./classify-failure.js";

/** The verdict on an agent that ended without a result. */
export function withoutResult(
  { exitCode, signal, stderr }: { exitCode: number; signal?: string; stderr: string },
  said: string,
): AgentVerdict {
  const words = [said, stderr.trim()].filter((text) => text !== "").join("\n");
  const known = classifyFailure(words);
  const how = signal === undefined ? `exit ${exitCode}` : signal;
  const failure = known !== "agent_error" ? known : signal === undefined ? "no_result" : "crash";
  return { isError: true, text: words === "" ? `it ended with ${how} and said nothing` : words, failure };
}
