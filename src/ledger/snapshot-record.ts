import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotRecord } from "../../contracts/backend.js";
import { SandboxError } from "../../contracts/errors.js";
import { writeFileAtomic } from "../machine/atomic-file.js";
import { privateSubdirectory } from "../machine/home.js";

const ID = /^[a-z0-9][a-z0-9-]{2,80}$/;
const SUFFIX = ".json";

/** The directory of all snapshots that are not in one of the user's repositories. */
export function snapshotsDir(): string {
  return privateSubdirectory("snapshots");
}

/** Writes the record of a snapshot. From now on Glovebox deletes it only on request. */
export async function writeSnapshotRecord(record: SnapshotRecord): Promise<void> {
  await writeFileAtomic(pathOf(record.id), `${JSON.stringify(record, undefined, 2)}\n`);
}

/** Reads the record of a snapshot; `not_found` if there is none, `tampered` if it can't be read. */
export async function readSnapshotRecord(id: string): Promise<SnapshotRecord> {
  const text = ID.test(id) ? await readFile(pathOf(id), "utf8").catch(absent) : undefined;
  if (text === undefined) throw new SandboxError("not_found", `No snapshot with the id ${JSON.stringify(id)}`);
  const record = parse(text, id);
  if (record !== undefined) return record;
  throw new SandboxError("tampered", `The record of snapshot "${id}" is damaged`, { hint: `Look at ${pathOf(id)}` });
}

/** All snapshots whose record can be read, oldest first. */
export async function readSnapshotRecords(): Promise<SnapshotRecord[]> {
  const records: SnapshotRecord[] = [];
  for (const id of await snapshotIds()) {
    const record = parse((await readFile(pathOf(id), "utf8").catch(absent)) ?? "", id);
    if (record !== undefined) records.push(record);
  }
  return records.sort((a, b) => a.createdAt.localeCompare(b.createdAt) || a.id.localeCompare(b.id));
}

/** The ids of all records, including damaged ones. */
export async function snapshotIds(): Promise<string[]> {
  const names = (await readdir(snapshotsDir())).filter((name) => name.endsWith(SUFFIX));
  return names.map((name) => name.slice(0, -SUFFIX.length)).filter((id) => ID.test(id));
}

/** Removes the record of a snapshot. */
export async function removeSnapshotRecord(id: string): Promise<void> {
  await rm(pathOf(id), { force: true });
}

function pathOf(id: string): string {
  return join(snapshotsDir(), `${id}${SUFFIX}`);
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

function parse(text: string, id: string): SnapshotRecord | undefined {
  try {
    const value = JSON.parse(text) as Record<string, unknown>;
    const texts = ["sandboxId", "backend", "createdAt"].map((field) => value[field]);
    const maybe = ["name", "repo", "workDir", "gitDir", "ref", "commit", "archive"].map((field) => value[field] ?? "");
    const isComplete = [...texts, ...maybe].every((field) => typeof field === "string");
    return value["version"] === 1 && value["id"] === id && isComplete
      ? (value as unknown as SnapshotRecord)
      : undefined;
  } catch {
    return undefined;
  }
}
