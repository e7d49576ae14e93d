import { redact } from "../../util/sanitize.js";
import { SandboxError, type SandboxErrorCode } from "../errors.js";

/** What the SDK throws when the service answers with a failure. */
interface ApiError extends Error {
  response: { status: number; headers: Headers };
  json?: { error?: { code?: string; message?: string } };
}

const CODES: Readonly<Record<number, SandboxErrorCode>> = {
  400: "invalid_argument",
  401: "unauthenticated",
  402: "limit_exceeded",
  403: "permission_denied",
  404: "not_found",
  409: "conflict",
  410: "backend_lost",
  413: "limit_exceeded",
  422: "backend_lost",
  429: "unavailable",
};

/** The answer's status; undefined when the failure was no answer of the service. */
export function statusOf(error: unknown): number | undefined {
  return (error as Partial<ApiError> | undefined)?.response?.status;
}

/** Turns what the SDK threw into an error of ours; the service's failure is never the command's. */
export function toVercelError(error: unknown, operation?: string): SandboxError {
  if (error instanceof SandboxError) return error;
  const status = statusOf(error);
  const said = (error as Partial<ApiError>)?.json?.error?.message ?? (error as Error)?.message ?? String(error);
  const message = redact(said);
  const details = { backend: "vercel", operation, cause: withoutBody(error) };
  if (status === undefined) {
    return isStopped(error)
      ? new SandboxError("backend_lost", `The machine was stopped: ${message}`, details)
      : new SandboxError("unavailable", `Vercel could not be reached: ${message}${causeOf(error)}`, details);
  }
  const code = CODES[status] ?? (status >= 500 ? "unavailable" : "internal");
  return new SandboxError(code, `Vercel answered ${status}: ${message}`, { ...details, hint: HINTS[status] });
}

const HINTS: Readonly<Record<number, string>> = {
  401: "the token is not valid, or has expired",
  403: "the token may not use this team or project",
  410: "the machine has reached its timeout or was stopped; vercel.timeout sets how long it may stand idle",
  422: "the machine is being stopped",
  429: "the plan's rate of new machines or requests is used up; try later",
};

/** Whether the same request may succeed in a moment. */
export function isPassing(error: unknown): boolean {
  const status = statusOf(error);
  if (status === undefined) return !(error instanceof SandboxError) && !isStopped(error);
  return status === 408 || status === 429 || status >= 500;
}

/** The log stream says that the machine is gone; that it was cut off says nothing. */
function isStopped(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === "sandbox_stopped";
}

function causeOf(error: unknown): string {
  const code = ((error as Error | undefined)?.cause as NodeJS.ErrnoException | undefined)?.code;
  return code === undefined ? "" : ` (${code})`;
}

/** The SDK's errors carry the whole answer, which nobody shall find in a log. */
function withoutBody(error: unknown): Error {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const kept = new Error(redact(message));
  kept.name = name;
  if (stack !== undefined) kept.stack = redact(stack);
  return kept;
}
