import type { Flag } from "./flags.js";

/** One verb: its arguments and its help text. */
export interface CliCommand {
  readonly name: string;
  readonly summary: string;
  /** The operands after the verb and the flags, as the help shows them. */
  readonly operands: string;
  readonly flags: readonly Flag[];
  /** Whether `--` and a command come after them. */
  readonly argv: "required" | "optional" | "none";
  /** The least and the most operands before `--`. */
  readonly operandCount: readonly [number, number];
  /** The shell's completions for each operand; the last entry is for all that follow. */
  readonly offers?: readonly Flag["offers"][];
  readonly notes?: readonly string[];
  readonly examples: readonly (readonly [line: string, meaning: string])[];
}
