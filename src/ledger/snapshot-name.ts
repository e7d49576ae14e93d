import type { SnapshotRecord } from "../../contracts/backend.js";
import { SandboxError } from "../../contracts/errors.js";
import { type LockOptions, withLock } from "../machine/lock.js";
import * as is from "../util/schema.js";
import { invalidArgument, type Schema } from "../util/schema.js";
import { readSnapshotRecord, readSnapshotRecords, writeSnapshotRecord } from "./snapshot-record.js";

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** What backends make ids of: sixteen hexadecimal digits at the start, or twelve and more at the end. A date has no letters. */
const LIKE_AN_ID = /^[0-9a-f]{16}(-|$)|-(?=[0-9-]*[a-f])[0-9a-f-]{12,}$/;

/** The name of a snapshot. One that looks like an id is refused: it could hide a snapshot. */
export const snapshotName: Schema<string> = is.and(
  is.matching(NAME, "1 to 63 lower-case letters, digits, dots, dashes and underscores, the first a letter or digit"),
  (value, option) => {
    if (LIKE_AN_ID.test(value)) throw invalidArgument(option, "a name that does not look like an id", value);
  },
);

/** Finds a snapshot by its id, otherwise by its name; `not_found` if there is none. */
export async function findSnapshotRecord(idOrName: string): Promise<SnapshotRecord> {
  try {
    return await readSnapshotRecord(idOrName);
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== "not_found") throw error;
    const named = NAME.test(idOrName) ? await findNamed(idOrName) : undefined;
    if (named !== undefined) return named;
    throw new SandboxError("not_found", `No snapshot with the id or name ${JSON.stringify(idOrName)}`);
  }
}

/**
 * Makes a snapshot under a name that no other has; `make` returns its id. A name in use is `conflict`, before anything is made. Whoever wants the
 * same name at the same time waits for the outcome.
 */
export async function withSnapshotName(name: string, make: () => Promise<string>, opts: LockOptions): Promise<string> {
  const work = async (): Promise<string> => {
    const taken = (await findNamed(name)) ?? (await readSnapshotRecord(name).catch(() => undefined));
    if (taken !== undefined) throw inUse(name, taken.id);
    const id = await make();
    opts.signal?.throwIfAborted();
    await writeSnapshotRecord({ ...(await readSnapshotRecord(id)), name });
    return id;
  };
  return await withLock(`snapshot-name:${name}`, work, opts);
}

async function findNamed(name: string): Promise<SnapshotRecord | undefined> {
  return (await readSnapshotRecords()).find((record) => record.name === name);
}

function inUse(name: string, id: string): SandboxError {
  return new SandboxError("conflict", `The name "${name}" is in use by snapshot ${id}`, {
    retryable: false,
    hint: `choose another name, or delete that snapshot (glovebox snapshots --delete ${name})`,
  });
}
