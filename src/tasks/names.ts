import { randomBytes, randomUUID } from "node:crypto";
import { matching, type Schema } from "../util/schema.js";

/** Longest part of a name that comes from a caller; engines take names of any length, people do not read them. */
const MAX_PART = 48;

/** Makes any text a part of a name: letters, digits, `_` and `-`; never empty, never a path. */
export function toNamePart(text: string): string {
  const safe = text.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "");
  return safe.slice(0, MAX_PART) || "x";
}

/** What the name of a container can start with. */
export const batchIdPrefix: Schema<string> = matching(
  /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/,
  "letters, digits, dashes and underscores, 32 at most",
);

/** The id of a new batch: `{prefix}-{8 hex digits}`. */
export function newBatchId(prefix: string): string {
  return `${prefix}-${hex8()}`;
}

/** The id of a new execution of a task. */
export function newExecutionId(): string {
  return randomUUID().replaceAll("-", "");
}

/** The name of a container: `{batch}-{execution}-{container}-{task}-{8 hex digits}`. */
export function containerName(batchId: string, executionId: string, container: string, taskId: string): string {
  return `${batchId}-${executionId}-${toNamePart(container)}-${toNamePart(taskId)}-${hex8()}`;
}

/** The name of a task's network; clones get one of their own. */
export function networkName(batchId: string, executionId: string, network: string): string {
  return `${batchId}-${executionId}-${toNamePart(network)}-${hex8()}`;
}

function hex8(): string {
  return randomBytes(4).toString("hex");
}
