import type { AgentVerdict } from "../types.js";
import { failureOfError, failureOfStderr } from "./failure-of.js";

/**
 * The verdict on an agent that ended without a result. `error` is what its program reported, `said` what its model did. What a program that nobody knows
 * (`isUnknown`) prints to stderr may be of anything.
 */
export function withoutResult(
  { exitCode, signal, stderr }: { exitCode: number; signal?: string; stderr: string },
  { said = "", error = "", isUnknown = false }: { said?: string; error?: string; isUnknown?: boolean } = {},
): AgentVerdict {
  const words = [said, error, stderr.trim()].filter((text) => text !== "").join("\n");
  const lines = isUnknown ? [] : stderr.split("\n");
  const known = [failureOfError(error), ...lines.map(failureOfStderr)].find((failure) => failure !== "agent_error");
  const how = signal === undefined ? `exit ${exitCode}` : signal;
  const failure = known ?? (signal === undefined ? "no_result" : "crash");
  return { isError: true, text: words === "" ? `it ended with ${how} and said nothing` : words, failure };
}
