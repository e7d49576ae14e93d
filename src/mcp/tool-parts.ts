import type { NetworkPolicy } from "../../contracts/types.js";
import type { AnswerStyle } from "./answer.js";
import type { CheckedOptions } from "./options.js";
import type { OwnedRuns } from "./runs.js";
import type { OwnedSandboxes } from "./sandboxes.js";

/** What tools are made of. */
export interface ToolParts {
  readonly options: CheckedOptions;
  readonly style: AnswerStyle;
  readonly sandboxes: OwnedSandboxes;
  /** Undefined without the group `runs`. */
  readonly runs: OwnedRuns | undefined;
  /** The rule that the sandboxes will have; undefined: they have their own. */
  readonly network: NetworkPolicy | undefined;
}
