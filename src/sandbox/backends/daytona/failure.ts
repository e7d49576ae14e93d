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
/** How long the service may ask to wait, where the caller has no deadline of its own. */
const PATIENCE = 60_000;

interface Failure {
  message?: unknown;
  statusCode?: number;
  headers?: Record<string, unknown>;
}

/** The status of the service's answer; undefined when there was none. */
export function statusOf(error: unknown): number | undefined {
  const status = (error as Failure | undefined)?.statusCode;
  return typeof status === "number" ? status : undefined;
}

/** Gives a failure of the SDK one of our codes, and names what was asked. */
export function toFailure(error: unknown, what: string): SandboxError {
  if (error instanceof SandboxError) return error;
  const status = statusOf(error);
  const code = status === undefined ? "unavailable" : (BY_STATUS.get(status) ?? "unavailable");
  const { message } = (error ?? {}) as Failure;
  const said = typeof message === "string" && message !== "" ? message : `status ${status ?? "unknown"}`;
  return new SandboxError(code, `Daytona: ${what}: ${said}`, { cause: error, hint: hintOf(status, error) });
}

/**
 * What became of a sandbox whose toolbox refused a call. A stopped one says 400 and a deleted one 404, as if the caller
 * had been wrong, so it is asked how it is.
 */
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

/** The error for a sandbox that is not there any more. */
export function lost(message: string, cause?: unknown): SandboxError {
  return new SandboxError("backend_lost", `Daytona: ${message}`, { cause });
}

/** Whether the same request may succeed in a moment. Only for those that may be made twice. */
export function isPassing(error: unknown): boolean {
  const status = statusOf(error);
  return status === undefined ? !(error instanceof SandboxError) : status === 429 || status >= 500;
}

/**
 * Makes a request that may be made twice until it is answered. A pause is as long as the service asks for, else it grows.
 * Gives up at once when the pause would end after `patience` milliseconds; without that, after a few attempts.
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

/** Whether a sandbox is on its way from one state to another, so that it takes no request for a third yet. */
export function isBetweenStates(error: unknown): boolean {
  return statusOf(error) === 409 && /state change in progress/i.test(String((error as Failure).message));
}

/** Milliseconds that an answer asks to wait for. The header's name ends with that of the limit. */
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
  return `the limit of requests was reached; try again ${when}`;
}
