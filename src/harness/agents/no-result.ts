import type { AgentVerdict } from "../types.js";
import { failureOfError } from "./failure-of.js";

/** The verdict on an agent that ended without a result. `error` is what its program reported, `said` what its model did. */
export function withoutResult(
  { exitCode, signal, stderr }: { exitCode: number; signal?: string; stderr: string },
  { said = "", error = "" }: { said?: string; error?: string } = {},
): AgentVerdict {
  const words = [said, error, stderr.trim()].filter((text) => text !== "").join("\n");
  const known = [error, ...stderr.split("\n")].map(failureOfError).find((failure) => failure !== "agent_error");
  const how = signal === undefined ? `exit ${exitCode}` : signal;
  const failure = known ?? (signal === undefined ? "no_result" : "crash");
  return { isError: true, text: words === "" ? `it ended with ${how} and said nothing` : words, failure };
}
