import type { SandboxError, SandboxErrorCode } from "../../contracts/errors.js";
import type { BatchTask } from "./types.js";

/** Whose failure it is: that of what runs the task, or of the task itself, which no repetition would help. */
export type FailureKind = "infra" | "task";

/** Failures of what runs the tasks, beside those that an error itself calls retryable. */
const INFRA: readonly SandboxErrorCode[] = [
  "backend_lost",
  "internal",
  "tampered",
  "closed",
  "unauthenticated",
  "missing_dependency",
  "no_isolation",
];

/** Every task would fail in the same way, until somebody does something about it. */
const FOR_ALL: readonly SandboxErrorCode[] = ["unauthenticated", "no_isolation"];
/** So would every other sandbox; in one that is open, they are its task's: an agent that its image does not have. */
const FOR_ALL_SANDBOXES: readonly SandboxErrorCode[] = ["missing_dependency", "no_space", "permission_denied"];

/** Judges a failure by its code, never by its text. */
export function kindOf({ code, retryable }: SandboxError): FailureKind {
  return retryable || INFRA.includes(code) ? "infra" : "task";
}

/** Whether no other task can be opened either: the batch stops, and can be resumed. */
export function stopsAll({ code }: SandboxError, isOpening: boolean): boolean {
  return FOR_ALL.includes(code) || (isOpening && FOR_ALL_SANDBOXES.includes(code));
}

/** Whether a failure that would stop everything may be that of one task, because this task's sandbox is not made as the others are. */
export function mayBeOwn(task: BatchTask, { code }: SandboxError): boolean {
  const hasOwn = "setup" in task || "blueprint" in task || task.image !== undefined;
  return hasOwn && code !== "no_space" && code !== "no_isolation";
}

/** Whether a backend refused to open one more: too many requests, a quota, a service that is busy or away. */
export function isRefusal({ code, retryable }: SandboxError, isOpening: boolean): boolean {
  return isOpening && ((code === "unavailable" && retryable) || code === "limit_exceeded");
}
