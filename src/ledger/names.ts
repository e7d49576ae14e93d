import { readFileSync } from "node:fs";
import { readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { writeFileAtomic } from "../machine/atomic-file.js";
import { failpoint } from "../machine/failpoint.js";
import { privateSubdirectory } from "../machine/home.js";
import { withLock } from "../machine/lock.js";
import { currentOwner, isOwnerAlive, type Owner } from "../machine/owner.js";
import { isSandboxId } from "../machine/sandbox-id.js";
import { isSandboxName } from "../machine/sandbox-name.js";
import { isOwner, type SandboxRecord } from "./record.js";
import { readRecord } from "./records.js";

const CLAIM = ".json";
/** What a crash leaves of a claim that was being written. */
const DRAFT = ".tmp";
const ABANDONED_AFTER = 3_600_000;

/** Who has a name. The owner only counts until the sandbox has a record. */
interface Claim {
  readonly id: string;
  readonly owner: Owner;
}

/**
 * Gives a name to the sandbox that this process is about to make. A name in use is `conflict`. If a dead process left the sandbox of that name,
 * returns its record and gives nothing: remove the sandbox first, then try again.
 */
export async function claimName(
  name: string,
  id: string,
  isLeftOver: (record: SandboxRecord) => boolean,
  signal?: AbortSignal,
): Promise<SandboxRecord | undefined> {
  const claim = async (): Promise<SandboxRecord | undefined> => {
    if (isSandboxId(name) && (await readRecord(name)) !== undefined) throw taken(name, "it is the id of a sandbox");
    const found = await readClaim(name);
    if (found !== undefined) {
      const record = await readRecord(found.id);
      if (record !== undefined && isLeftOver(record)) return record;
      if (record !== undefined) throw taken(name, `sandbox ${found.id} has it`);
      if (isOwnerAlive(found.owner) !== "dead") throw taken(name, `process ${found.owner.pid} is opening it`);
    }
    const own: Claim = { id, owner: currentOwner() };
    await writeFileAtomic(fileOf(name), `${JSON.stringify(own)}\n`);
    await failpoint("name.claimed");
    return undefined;
  };
  return await withLock(`name:${name}`, claim, { signal });
}

/** Frees the name of a sandbox. No error if another one has it. */
export async function freeName(name: string, id: string): Promise<void> {
  await withLock(`name:${name}`, async () => {
    if ((await readClaim(name))?.id === id) await removeClaim(name);
  });
}

/** The id of the sandbox with this id or name; undefined if there is none. */
export async function findSandboxId(reference: string): Promise<string | undefined> {
  if (isSandboxId(reference) && (await readRecord(reference)) !== undefined) return reference;
  if (!isSandboxName(reference)) return undefined;
  const claim = await readClaim(reference);
  return claim !== undefined && (await readRecord(claim.id)) !== undefined ? claim.id : undefined;
}

/** Removes the names that processes claimed and died before they recorded a sandbox. `used`: names that need no look. */
export async function sweepNames(used: ReadonlySet<string>): Promise<void> {
  for (const file of await readdir(namesDir())) {
    if (file.endsWith(DRAFT)) await removeOldDraft(join(namesDir(), file));
    const name = file.endsWith(CLAIM) ? file.slice(0, -CLAIM.length) : "";
    if (used.has(name) || !isSandboxName(name)) continue;
    // A damaged one is for its user to see.
    const claim = await readClaim(name).catch(() => undefined);
    if (claim === undefined || isOwnerAlive(claim.owner) !== "dead") continue;
    await withLock(`name:${name}`, async () => {
      const { id, owner } = (await readClaim(name)) ?? claim;
      if (isOwnerAlive(owner) === "dead" && (await readRecord(id)) === undefined) await removeClaim(name);
    });
  }
}

async function removeOldDraft(path: string): Promise<void> {
  const made = await stat(path).catch(() => undefined);
  if (made !== undefined && Date.now() - made.mtimeMs > ABANDONED_AFTER) await unlink(path).catch(() => undefined);
}

async function readClaim(name: string): Promise<Claim | undefined> {
  let text: string;
  try {
    text = readFileSync(fileOf(name), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw toSandboxError(error, { operation: "ledger" });
  }
  const claim = parse(text);
  if (claim !== undefined) return claim;
  throw new SandboxError("tampered", `What the ledger knows about the name "${name}" is damaged`, {
    operation: "ledger",
    hint: `remove ${fileOf(name)}; the sandbox itself still has its id`,
  });
}

function parse(text: string): Claim | undefined {
  try {
    const { id, owner } = JSON.parse(text) as Partial<Claim>;
    return typeof id === "string" && isSandboxId(id) && isOwner(owner) ? { id, owner: owner as Owner } : undefined;
  } catch {
    return undefined;
  }
}

async function removeClaim(name: string): Promise<void> {
  await unlink(fileOf(name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw toSandboxError(error, { operation: "ledger" });
  });
}

function fileOf(name: string): string {
  return join(namesDir(), `${name}${CLAIM}`);
}

function namesDir(): string {
  return privateSubdirectory("names");
}

function taken(name: string, why: string): SandboxError {
  return new SandboxError("conflict", `The name "${name}" is in use: ${why}`, {
    retryable: false,
    hint: `open that sandbox with id: "${name}" or ifExists: "reopen", choose another name, or remove it (glovebox rm ${name})`,
  });
}
