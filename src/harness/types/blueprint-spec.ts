import type { Limits, Mount } from "../../../contracts/types.js";
import type { LimitsSpec } from "../node-types.js";
import type { NodeSpec } from "../nodes.js";

/** A blueprint as it is written, in code or in a document. A document has no functions. */
export interface BlueprintSpec {
  version?: 1;
  name: string;
  description?: string;
  inputs?: Readonly<
    Record<
      string,
      {
        type?: "string" | "number" | "boolean";
        description?: string;
        required?: boolean;
        default?: string | number | boolean;
      }
    >
  >;
  sandbox?: {
    image?: string;
    workspace?: "worktree" | "overlay" | "copy";
    network?: "none" | "full";
    allow?: readonly string[];
    env?: Readonly<Record<string, string>>;
    setup?: readonly (readonly string[])[];
    limits?: Limits;
    mounts?: readonly Mount[];
  };
  limits?: LimitsSpec;
  expectsChanges?: boolean;
  nodes: readonly NodeSpec[];
}
