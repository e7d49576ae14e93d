import { SandboxError } from "../../contracts/errors.js";
import type { Invocation } from "./invocation.js";

/**
 * Removes things one by one until one fails or the program is interrupted, and returns the removed ids. Without `--json` it
 * prints a line for each; with it, an error carries the removed ids as its partial result.
 */
export async function removeEach(
  ids: readonly string[],
  { flags, screen, interruption }: Invocation,
  remove: (id: string) => Promise<unknown>,
  lineOf: (id: string) => string = (id) => id,
): Promise<string[]> {
  const removed: string[] = [];
  for (const id of ids) {
    if (interruption.ending !== undefined) break;
    try {
      await screen.during(`removing ${id}`, () => remove(id));
    } catch (error) {
      if (!(error instanceof SandboxError) || removed.length === 0) throw error;
      const { code, message, backend, operation, retryable, cause, hint } = error;
      throw new SandboxError(code, message, { backend, operation, retryable, cause, hint, partial: { removed } });
    }
    removed.push(id);
    if (!flags.has("json")) await screen.print(`${lineOf(id)}\n`);
  }
  return removed;
}
