import type { Interruption, Screen } from "./terminal.js";

/** The flags that were given. */
export interface Flags {
  has(name: string): boolean;
  /** The last value of a flag. */
  text(name: string): string | undefined;
  /** Every value of a flag that may be repeated. */
  texts(name: string): readonly string[];
}

/** A command line that was understood. */
export interface Parsed {
  readonly flags: Flags;
  readonly operands: readonly string[];
  /** What stands behind `--`. */
  readonly argv: readonly string[];
}

/** What a verb works with. */
export interface Invocation extends Parsed {
  readonly screen: Screen;
  readonly interruption: Interruption;
}

/** What the module of a verb exports. */
export interface VerbModule {
  /** Does the work and gives the exit code. */
  run(invocation: Invocation): Promise<number>;
}
