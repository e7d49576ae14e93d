/** An error whose `code` tells a caller above which kind of failure it is. */
export type CodedError = Error & { readonly code: string };

/** Makes an error with a `code`, for layers that must not know the sandbox's own error class. */
export function codedError(code: string, message: string, cause?: unknown): CodedError {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { code });
}
