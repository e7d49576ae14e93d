import type { Limits, Mount, NetworkRule, SecretRule } from "../../../contracts/types.js";
import type { LimitsSpec, RunLimits } from "../node-types.js";
import type { BlueprintNode, NodeSpec } from "../nodes.js";

/** A value that a run can be given. */
export interface InputSpec {
  readonly type: "string" | "number" | "boolean";
  readonly description?: string;
  readonly required: boolean;
  readonly default?: string | number | boolean;
}

/** The sandbox that a blueprint wants. */
export interface BlueprintSandbox {
  readonly image?: string;
  readonly workspace?: "worktree" | "overlay" | "copy";
  /** Hosts beside those that agents need. `full`: all. */
  readonly network?: "none" | "full";
  readonly allow: readonly (string | NetworkRule)[];
  readonly deny?: readonly (string | NetworkRule)[];
  readonly env: Readonly<Record<string, string>>;
  /** Secrets that every node can use and none sees, by their variables. Their values are in the variables of this process. */
  readonly secrets?: Readonly<Record<string, Omit<SecretRule, "from" | "force">>>;
  /** Programs to run before the first node, and before the agents are looked for. */
  readonly setup: readonly (readonly string[])[];
  /** False: nothing is installed. A program with its arguments: in place of what the lockfile asks for. Absent: found from the lockfile. */
  readonly install?: false | readonly string[];
  /** Ignored paths of your working tree to copy in, such as `node_modules`. */
  readonly copy?: readonly string[];
  /** Files below HOME in the sandbox, by their paths: a text, or a file of this machine that is copied in. */
  readonly home?: Readonly<Record<string, string | HomeFile>>;
  readonly limits?: Limits;
  readonly mounts: readonly Mount[];
}

/** A file of this machine for the HOME of a sandbox. */
export interface HomeFile {
  /** An absolute path, or one that starts with `~/`. */
  readonly file: string;
}

/** A checked blueprint: aliases resolved, defaults filled in, nodes in the order in which they run. */
export interface Blueprint {
  readonly version: 1;
  readonly name: string;
  readonly description?: string;
  readonly inputs: Readonly<Record<string, InputSpec>>;
  readonly sandbox: BlueprintSandbox;
  readonly limits: RunLimits;
  readonly nodes: readonly BlueprintNode[];
  /** Whether a run that changes nothing is `no_changes`. Default: whether a node expects changes, as a commit does. */
  readonly expectsChanges: boolean;
  /** The file that it was read from. */
  readonly source?: string;
}

/** A blueprint as it is written, in code or in a document. A document has no functions. */
export interface BlueprintSpec {
  version?: 1;
  name: string;
  description?: string;
  inputs?: Readonly<Record<string, Partial<InputSpec>>>;
  sandbox?: Partial<BlueprintSandbox>;
  limits?: LimitsSpec;
  expectsChanges?: boolean;
  nodes: readonly NodeSpec[];
}
