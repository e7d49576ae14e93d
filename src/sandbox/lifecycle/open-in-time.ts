import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import { explainGitFailure } from "../git.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox, type SandboxOptions } from "../types.js";

/** How long a failed opening may take to undo what it made, in milliseconds. The rest is undone after the call has returned. */
const UNDOING = 500;

/**
 * Opens a sandbox within `operationTimeout`, or until `signal` is aborted. `open` gets the options with a signal for both. A failed opening leaves
 * nothing: a sandbox that is ready too late is torn down.
 */
export async function openInTime(
  backend: string,
  opts: SandboxOptions,
  open: (opts: SandboxOptions) => Promise<Sandbox>,
): Promise<Sandbox> {
  const { operationTimeout = DEFAULT_OPERATION_TIMEOUT, signal: asked } = opts;
  const context = { backend, operation: "open" };
  const aborted = (cause: unknown): SandboxError =>
    new SandboxError("aborted", "Opening the sandbox was aborted", { ...context, cause });
  const isAborted = (): boolean => asked?.aborted === true;
  if (isAborted()) throw aborted(asked?.reason);
  let isLate = false;
  // Not AbortSignal.any: Node keeps a signal of that kind, and all that listens to it, for as long as the process runs.
  const ending = new AbortController();
  const { signal } = ending;
  const end = (): void => ending.abort(asked?.reason);
  asked?.addEventListener("abort", end, { once: true });
  const deadline = setTimeout(() => {
    isLate = true;
    ending.abort();
  }, operationTimeout);
  let undoing: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => {
      undoing = setTimeout(() => reject(signal.reason), UNDOING);
    });
  });
  const opening = open({ ...opts, signal });
  try {
    return await Promise.race([opening, over]);
  } catch (error) {
    opening.then((sandbox) => sandbox.teardown()).catch(() => undefined);
    if (isAborted()) throw aborted(error);
    if (!isLate) throw toSandboxError(explainGitFailure(error), context);
    throw new SandboxError("unavailable", `The sandbox was not ready within ${operationTimeout} ms`, {
      ...context,
      cause: error,
      hint: "raise operationTimeout, or try again when the machine is less busy",
    });
  } finally {
    clearTimeout(deadline);
    clearTimeout(undoing);
    asked?.removeEventListener("abort", end);
  }
}
