import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError, type SandboxErrorCode } from "../../../../contracts/errors.js";
import type { RemoteSandbox } from "./client.js";

const BY_STATUS = new Map<number, SandboxErrorCode>([
  [400, "invalid_argument"],
  [401, "unauthenticated"],
  [403, "permission_denied"],
  [404, "not_found"],
  [408, "unavailable"],
  [409, "conflict"],
  [410, "backend_lost"],
  [422, "unsupported"],
  [429, "unavailable"],
]);
const ATTEMPTS = 6;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 5_000;
/** How long to wait if the service asks for it and the caller has no deadline, in milliseconds. */
const PATIENCE = 60_000;

interface Failure {
  message?: unknown;
  statusCode?: number;
  headers?: Record<string, unknown>;
}

/** The status of the service's answer; undefined if there was none. */
export function statusOf(error: unknown): number | undefined {
  const status = (error as Failure | undefined)?.statusCode;
  return typeof status === "number" ? status : undefined;
}

/** Turns a failure of the SDK into an error with one of our codes, and names the request. */
export function toFailure(error: unknown, what: string): SandboxError {
  if (error instanceof SandboxError) return error;
  const status = statusOf(error);
  const code = status === undefined ? "unavailable" : (BY_STATUS.get(status) ?? "unavailable");
  const { message } = (error ?? {}) as Failure;
  const said = typeof message === "string" && message !== "" ? message : `status ${status ?? "unknown"}`;
  return new SandboxError(code, `Daytona: ${what}: ${said}`, { cause: error, hint: hintOf(status, error) });
}

/** Explains why a toolbox refused a call, by the state of its sandbox: a stopped one answers 400 and a deleted one 404. */
export async function diagnose(remote: RemoteSandbox, error: unknown, what: string): Promise<SandboxError> {
  if (error instanceof SandboxError) return error;
  if (![400, 404, 410, 502, undefined].includes(statusOf(error))) return toFailure(error, what);
  try {
    await remote.refreshData();
  } catch (second) {
    if (statusOf(second) === 404) return lost(`sandbox ${remote.name} was deleted`, error);
    return toFailure(error, what);
  }
  if (remote.state === "started") return toFailure(error, what);
  const state = remote.state ?? "unknown";
  if (/ing$/.test(state) && state !== "destroying") {
    return new SandboxError("unavailable", `Daytona: ${what}: the sandbox is ${state}`, { cause: error });
  }
  return lost(`sandbox ${remote.name} is ${state}`, error);
}

/** The error for a sandbox that no longer exists. */
export function lost(message: string, cause?: unknown): SandboxError {
  return new SandboxError("backend_lost", `Daytona: ${message}`, { cause });
}

/** Whether the same request may succeed in a moment. Only for requests that can be repeated. */
export function isPassing(error: unknown): boolean {
  const status = statusOf(error);
  return status === undefined ? !(error instanceof SandboxError) : status === 429 || status >= 500;
}

/**
 * Repeats a request until it is answered. Each pause is as long as the service asks for, or grows. Gives up at once if the pause would end after
 * `patience` milliseconds; without `patience`, after a few attempts.
 */
export async function persist<T>(
  work: () => Promise<T>,
  isRetryable: (error: unknown) => boolean = isPassing,
  patience?: number,
): Promise<T> {
  const started = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const asked = retryAfter(error);
      const isLast = patience === undefined && asked === undefined && attempt >= ATTEMPTS;
      if (isLast || !isRetryable(error)) throw error;
      const pause = asked ?? Math.min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE);
      if (performance.now() - started + pause > (patience ?? PATIENCE)) throw error;
      await sleep(pause);
    }
  }
}

/** Whether a sandbox is changing its state and accepts no other change yet. */
export function isBetweenStates(error: unknown): boolean {
  return statusOf(error) === 409 && /state change in progress/i.test(String((error as Failure).message));
}

/** How many milliseconds an answer asks to wait. The header's name ends with that of the limit. */
function retryAfter(error: unknown): number | undefined {
  const headers = Object.entries((error as Failure).headers ?? {});
  const [, value] = headers.find(([name]) => name.toLowerCase().startsWith("retry-after")) ?? [];
  return value !== undefined && value !== "" && Number(value) >= 0 ? Number(value) * 1_000 : undefined;
}

function hintOf(status: number | undefined, error: unknown): string | undefined {
  if (status === 401) return "check DAYTONA_API_KEY";
  if (status !== 429) return undefined;
  const wait = retryAfter(error);
  const when = wait === undefined ? "later" : `in ${Math.ceil(wait / 1_000)} s`;
  return `the request limit was reached; try again ${when}`;
}
