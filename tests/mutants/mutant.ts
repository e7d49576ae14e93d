import type { Driver, Sandbox, SandboxOptions } from "../../src/sandbox/types.js";

/** A backend that is broken on purpose, and the case of the kit that must notice. */
export interface Mutant {
  readonly name: string;
  /** The case that is there to catch it. */
  readonly caught: string;
  /** What that case must say: it has to be red for this fault, not for another one. */
  readonly because: RegExp;
  /** Whether nothing else may run beside it. */
  readonly alone?: boolean;
  /** Milliseconds after which a case that hangs is red, for mutants that make it hang. */
  readonly patience?: number;
  /** Whether an expired sandbox that is kept stays. */
  readonly keepsExpired?: boolean;
  /** What is made of the options before they are used. */
  options?(opts: SandboxOptions): SandboxOptions;
  /** What is broken below the portable part. */
  driver?(driver: Driver): Driver;
  /** What is broken in the place of the portable part. */
  sandbox?(sandbox: Sandbox): Sandbox;
}
