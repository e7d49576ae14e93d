import type { GuestCall } from "./guest-process.js";

/** Ends a call of the guest when the signal is aborted; rejects with the signal's reason then. */
export async function cancelledBy<T>(
  signal: AbortSignal | undefined,
  call: GuestCall,
  work: () => Promise<T>,
): Promise<T> {
  if (signal === undefined) return await work();
  const cancel = (): void => {
    // It fails only if the channel is closed, and then nothing is under way.
    call.kill("SIGKILL").catch(() => undefined);
  };
  if (signal.aborted) cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const outcome = await work();
    signal.throwIfAborted();
    return outcome;
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}
