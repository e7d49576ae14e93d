/** The message of an aborted call, with the reason if there is one. */
export function abortMessage(signal: AbortSignal): string {
  const { reason } = signal;
  return `The call was aborted${reason instanceof Error && reason.name !== "AbortError" ? `: ${reason.message}` : ""}`;
}
