import type { ExecResult } from "./types.js";

/** Why an operation failed. The set is closed, so callers can switch on it. */
export const ERROR_CODES = [
  "path_confinement",
  "invalid_argument",
  "invalid_path",
  "not_regular_file",
  "not_found",
  "command_not_allowed",
  "command_failed",
  "unsupported",
  "unauthenticated",
  "permission_denied",
  "unavailable",
  "backend_lost",
  "aborted",
  "limit_exceeded",
  "no_space",
  "conflict",
  "missing_dependency",
  "no_isolation",
  "closed",
  "tampered",
  "internal",
] as const;

export type SandboxErrorCode = (typeof ERROR_CODES)[number];

/** What a `SandboxError` carries besides its message. */
export interface SandboxErrorDetails {
  backend?: string | undefined;
  operation?: string | undefined;
  /** Whether the same call may succeed later without changes. Default: true for `unavailable` and `conflict`. */
  retryable?: boolean | undefined;
  cause?: unknown;
  /** One line that says how to fix it. */
  hint?: string | undefined;
  /** What an aborted exec had produced so far. */
  partial?: unknown;
  /** The whole result of a command that failed, with `command_failed`. */
  result?: ExecResult | undefined;
}

/** The only error that Glovebox throws. A command that fails is an `ExecResult`; with `check: true` it is this error, with that result on it. */
export class SandboxError extends Error {
  override readonly name = "SandboxError";
  readonly code: SandboxErrorCode;
  backend: string | undefined;
  operation: string | undefined;
  readonly retryable: boolean;
  readonly hint: string | undefined;
  readonly partial: unknown;
  /** Not redacted, and therefore not enumerable: a logged error does not show it. */
  declare readonly result: ExecResult | undefined;

  constructor(code: SandboxErrorCode, message: string, details: SandboxErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.backend = details.backend;
    this.operation = details.operation;
    this.retryable = details.retryable ?? (code === "unavailable" || code === "conflict");
    this.hint = details.hint;
    this.partial = details.partial;
    if (details.result !== undefined) Object.defineProperty(this, "result", { value: details.result });
  }
}

/** Turns any failure into a `SandboxError`; returns one that already is, with `backend` and `operation` filled in. */
export function toSandboxError(error: unknown, details: SandboxErrorDetails = {}): SandboxError {
  if (error instanceof SandboxError) {
    error.backend ??= details.backend;
    error.operation ??= details.operation;
    return error;
  }
  const message = error instanceof Error ? error.message : String(error);
  return new SandboxError(codeOfSystemError(error), message, { ...details, cause: error });
}

/** Runs `work` and rethrows any failure as a `SandboxError`. */
export async function withTypedErrors<T>(operation: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toSandboxError(error, { operation });
  }
}

/** Errors from lower layers already carry one of our codes or one of the system's. */
function codeOfSystemError(error: unknown): SandboxErrorCode {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  const own = ERROR_CODES.find((known) => known === code);
  if (own !== undefined) return own;
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
      return "no_space";
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return "permission_denied";
    case "ENOENT":
      return "not_found";
    case "EEXIST":
      return "conflict";
    case "ENOTDIR":
    case "ENAMETOOLONG":
    case "ELOOP":
      return "invalid_path";
    case "EMFILE":
    case "ENFILE":
    case "EAGAIN":
    case "ENOMEM":
      return "unavailable";
    default:
      return "internal";
  }
}
