import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../sandbox/types.js";
import { listSandboxes, listSnapshots, openSandbox } from "../sandbox.js";
import { nearestName } from "../util/nearest.js";
import type { Invocation } from "./invocation.js";
import { reportEvents } from "./sandbox-options.js";

/** Opens a kept sandbox for one piece of work, then closes it; its files stay. */
export async function withKept<T>(
  { screen, interruption }: Invocation,
  id: string,
  what: string,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  return await screen.during(what, async () => {
    const options = { id, signal: interruption.signal, onEvent: reportEvents(screen) };
    const sandbox = await openSandbox(options).catch(async (error: unknown) => {
      throw withHint(error, nearestHint(id, await knownReferences(), "glovebox ls lists the ids"));
    });
    const unsubscribe = interruption.onEnd(() => void sandbox.teardown());
    try {
      return await work(sandbox);
    } catch (error) {
      if (interruption.ending === undefined) throw error;
      throw new SandboxError("aborted", `Stopped by ${interruption.ending}`, { cause: error });
    } finally {
      unsubscribe();
      await sandbox.teardown();
    }
  });
}

/** Rethrows an error; if the sandbox or snapshot to open does not exist, suggests the nearest one. */
export async function explainAbsent(
  error: unknown,
  { id, snapshot }: { readonly id?: string; readonly snapshot?: string },
): Promise<never> {
  if (!(error instanceof SandboxError) || error.code !== "not_found") throw error;
  if (snapshot !== undefined) throw await withNearestSnapshot(error, snapshot);
  if (id === undefined) throw error;
  throw withHint(error, nearestHint(id, await knownReferences(), "glovebox ls lists the ids"));
}

/** The ids and names of all sandboxes. */
export async function knownReferences(): Promise<string[]> {
  return (await listSandboxes()).flatMap(({ id, name }) => (name === undefined ? [id] : [id, name]));
}

/** Adds to an error about a snapshot the nearest id or name. */
export async function withNearestSnapshot(error: unknown, idOrName: string): Promise<unknown> {
  const known = (await listSnapshots()).flatMap(({ id, name }) => (name === undefined ? [id] : [name, id]));
  return withHint(error, nearestHint(idOrName, known, "glovebox snapshots lists the ids and names"));
}

/** A hint with the nearest known name; `otherwise` if none is close. */
export function nearestHint(name: string, names: readonly string[], otherwise: string): string {
  const nearest = nearestName(name, names);
  return nearest === undefined ? otherwise : `did you mean ${nearest}?`;
}

/** Adds a hint to an error about something that does not exist, unless it has one. */
export function withHint(error: unknown, hint: string): unknown {
  if (!(error instanceof SandboxError) || error.hint !== undefined) return error;
  if (error.code !== "not_found" && error.code !== "invalid_argument") return error;
  const { code, message, backend, operation, cause } = error;
  return new SandboxError(code, message, { backend, operation, cause, hint });
}
