import { SandboxError, type SandboxErrorCode } from "../../../../contracts/errors.js";
import { redact } from "../../../util/sanitize.js";

/** What the SDK throws if the service answers with a failure. */
interface ApiError extends Error {
  response: { status: number; headers: Headers };
  json?: { error?: { code?: string; message?: string; invalidToken?: boolean } };
}

/** The code and the hint for a failure. */
interface Meaning {
  readonly code: SandboxErrorCode;
  readonly hint?: string;
}

const MEANINGS: Readonly<Record<number, Meaning>> = {
  400: { code: "invalid_argument" },
  401: { code: "unauthenticated", hint: "the token is not valid, or has expired" },
  402: { code: "limit_exceeded" },
  403: { code: "permission_denied", hint: "the token may not use this team or project" },
  404: { code: "not_found" },
  409: { code: "conflict" },
  410: {
    code: "backend_lost",
    hint: "the machine has reached its timeout or was stopped; vercel.timeout sets how long it may be idle",
  },
  413: { code: "limit_exceeded" },
  422: { code: "backend_lost", hint: "the machine is being stopped" },
  429: { code: "unavailable", hint: "the plan's limit for new machines or requests is reached; try again later" },
};

/** Carries a short wait that the SDK must not see. */
export const WAIT_HEADER = "x-glovebox-retry-after";
/** Longer than any service asks for, and within the range of a timer. */
const LONGEST_WAIT = 3_600_000;

const INVALID_TOKEN: Meaning = {
  code: "unauthenticated",
  hint: "the token is not valid, or has expired; set a new one: VERCEL_TOKEN, or `vercel env pull` for VERCEL_OIDC_TOKEN",
};

/** The same status can mean different things; then the service's own code decides. */
const BY_CODE: Readonly<Record<string, Meaning>> = {
  snapshot_not_found: { code: "not_found", hint: "the snapshot has expired, or was deleted at Vercel" },
  snapshot_region_mismatch: { code: "conflict", hint: "set vercel.region to the region of the snapshot" },
};

/** The status of the answer; undefined if the failure is not an answer of the service. */
export function statusOf(error: unknown): number | undefined {
  return (error as Partial<ApiError> | undefined)?.response?.status;
}

/** The service's own error code; undefined if there is none. */
export function codeOf(error: unknown): string | undefined {
  return (error as Partial<ApiError> | undefined)?.json?.error?.code;
}

/** How many milliseconds the service asks to wait; undefined if it did not. */
export function retryAfter(error: unknown): number | undefined {
  const headers = (error as Partial<ApiError> | undefined)?.response?.headers;
  const said = headers?.get(WAIT_HEADER) ?? headers?.get("retry-after") ?? undefined;
  if (said === undefined || !isPassing(error)) return undefined;
  const ms = /^\d+$/.test(said) ? Number(said) * 1_000 : Date.parse(said) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_WAIT);
}

/** Turns what the SDK threw into one of our errors; a failure of the service is never one of the command. */
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
  const { code, hint } = meaningOf(error, status);
  return new SandboxError(code, `Vercel answered ${status}: ${message}`, { ...details, hint });
}

function meaningOf(error: unknown, status: number): Meaning {
  // An expired token is answered like a missing permission.
  if ((error as Partial<ApiError>).json?.error?.invalidToken === true) return INVALID_TOKEN;
  const known = BY_CODE[codeOf(error) ?? ""] ?? MEANINGS[status];
  const wait = retryAfter(error);
  const hint = wait === undefined ? undefined : `Vercel asks to wait ${Math.ceil(wait / 1_000)} s; try again then`;
  return { code: status >= 500 ? "unavailable" : "internal", ...known, ...(hint !== undefined && { hint }) };
}

/** Whether the same request may succeed in a moment. */
export function isPassing(error: unknown): boolean {
  const status = statusOf(error);
  if (status === undefined) return !(error instanceof SandboxError) && !isStopped(error);
  return status === 408 || status === 429 || status >= 500;
}

/** The log stream reports that the machine is gone; a stream that is cut off means nothing. */
function isStopped(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === "sandbox_stopped";
}

function causeOf(error: unknown): string {
  const code = ((error as Error | undefined)?.cause as NodeJS.ErrnoException | undefined)?.code;
  return code === undefined ? "" : ` (${code})`;
}

/** The SDK's errors contain the whole answer, which must not get into a log. */
function withoutBody(error: unknown): Error {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  const kept = new Error(redact(message));
  kept.name = name;
  if (stack !== undefined) kept.stack = redact(stack);
  return kept;
}
