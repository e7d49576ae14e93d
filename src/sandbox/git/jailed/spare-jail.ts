import { removeOwnTree } from "../../../machine/remove-tree.js";
import { makeScratchDirectory } from "../repository.js";
import { createJailedGit, type JailedGitPlaces, type RunJailedGit } from "./jailed-git.js";

/** A jail with the store that was made for it. */
export interface Jail {
  readonly store: string;
  readonly runJailedGit: RunJailedGit;
  /** Whether the store exists and the jail is started. */
  readonly isStarted: boolean;
}

interface Spare {
  readonly key: string;
  readonly store: string;
  readonly runJailedGit: RunJailedGit;
  readonly started: Promise<boolean>;
}

const spares = new WeakMap<object, Spare>();
const hadOne = new WeakSet<object>();

/** The spare jail of a sandbox, if it sees the same places; otherwise a jail that is not started yet. */
export async function takeJail(sandbox: object, store: string, places: Omit<JailedGitPlaces, "store">): Promise<Jail> {
  const spare = spares.get(sandbox);
  if (spare?.key === keyOf(places)) {
    spares.delete(sandbox);
    if (await spare.started) return { store: spare.store, runJailedGit: spare.runJailedGit, isStarted: true };
  }
  return { store, runJailedGit: createJailedGit({ store, ...places }), isStarted: false };
}

/**
 * Starts a jail for the next snapshot of a sandbox while nobody waits for it: a start takes as long as everything that git does in the jail.
 * Not after the first snapshot, which is usually the only one, and not on a layer, which must not change below a jail.
 */
export function startSpareJail(sandbox: object, store: string, places: Omit<JailedGitPlaces, "store">): void {
  const isFirst = !hadOne.has(sandbox);
  hadOne.add(sandbox);
  const hasLayer = [places.tree, ...places.objects].some(({ overlay }) => overlay !== undefined);
  if (isFirst || hasLayer || spares.has(sandbox) || places.signal?.aborted === true) return;
  const runJailedGit = createJailedGit({ store, ...places });
  const started = makeScratchDirectory(store).then(
    () => {
      runJailedGit.start?.();
      return true;
    },
    () => false,
  );
  spares.set(sandbox, { key: keyOf(places), store, runJailedGit, started });
}

/** Closes the spare jail of a sandbox that is being closed. */
export async function closeSpareJail(sandbox: object): Promise<void> {
  const spare = spares.get(sandbox);
  if (spare === undefined) return;
  spares.delete(sandbox);
  await spare.started;
  await spare.runJailedGit.close?.();
  await removeOwnTree(spare.store);
}

function keyOf({ tree, objects }: Omit<JailedGitPlaces, "store">): string {
  return JSON.stringify([tree, objects]);
}
