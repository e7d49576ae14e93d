import type { Interruption, Screen } from "./terminal.js";

/** The flags that were given. */
export interface Flags {
  has(name: string): boolean;
  /** The last value of a flag. */
  text(name: string): string | undefined;
  /** Every value of a flag that may be repeated. */
  texts(name: string): readonly string[];
}

/** A parsed command line. */
export interface Parsed {
  readonly flags: Flags;
  readonly operands: readonly string[];
  /** The words after `--`. */
  readonly argv: readonly string[];
}

/** Everything a verb gets. */
export interface Invocation extends Parsed {
  readonly screen: Screen;
  readonly interruption: Interruption;
}

/** What the module of a verb exports. */
export interface VerbModule {
  /** Does the work and returns the exit code. */
  run(invocation: Invocation): Promise<number>;
}
