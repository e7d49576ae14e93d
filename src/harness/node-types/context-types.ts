import type { NodeReport } from "./report-types.js";

/** What nodes, templates and conditions see of a run. */
export interface RunContext {
  readonly runId: string;
  readonly blueprint: string;
  readonly workDir: string;
  readonly intent: string;
  readonly repo: string;
  readonly branch: string;
  readonly push: boolean;
  readonly sandboxType: string;
  readonly specPath?: string;
  /** Text of the file at `specPath`. */
  readonly spec?: string;
  readonly inputs: Readonly<Record<string, string | number | boolean>>;
  /** Variables of every node, without secrets. Conditions and templates read them as `env.NAME`. */
  readonly env: Readonly<Record<string, string>>;
  /** What the nodes did so far, by id. Filled by the engine. */
  readonly results: Record<string, NodeReport>;
}
