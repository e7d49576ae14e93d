import type { Flag } from "./flags.js";

/** One verb: what it takes, and what its help says. */
export interface CliCommand {
  readonly name: string;
  readonly summary: string;
  /** What stands behind the verb and the flags. */
  readonly operands: string;
  readonly flags: readonly Flag[];
  /** Whether `--` and a command follow. */
  readonly argv: "required" | "optional" | "none";
  /** How many operands before `--` there may be. */
  readonly operandCount: readonly [number, number];
  /** What the shell offers for each operand; the last stands for all that follow. */
  readonly offers?: readonly Flag["offers"][];
  readonly notes?: readonly string[];
  readonly examples: readonly (readonly [line: string, meaning: string])[];
}
