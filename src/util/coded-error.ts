/** An error with a `code`, for the caller to tell failures apart. */
export type CodedError = Error & { readonly code: string };

/** Makes an error with a `code`, for layers that must not import `SandboxError`. */
export function codedError(code: string, message: string, cause?: unknown): CodedError {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code });
}
