import { crc32 } from "node:zlib";

/** The format of journals that this version writes. */
export const JOURNAL_VERSION = 1;

/** What a journal is about. */
export interface BatchRecord {
  readonly t: "batch";
  readonly version: number;
  /** On every sandbox of the batch as a label. */
  readonly id: string;
  /** Digest of all tasks. */
  readonly tasks: string;
  readonly count: number;
  /** As in `2/4`. */
  readonly shard?: string;
  /** ISO 8601. */
  readonly createdAt: string;
}
/** A task is to be run; once more, if it was finished. */
export interface PlannedRecord {
  readonly t: "planned";
  readonly task: string;
  readonly digest: string;
}
/** An attempt is about to run in what was made for it. */
export interface StartedRecord {
  readonly t: "started";
  readonly task: string;
  readonly attempt: number;
  readonly resource: string;
}
/** A task has its result, which ends at this byte of the results. */
export interface FinishedRecord {
  readonly t: "finished";
  readonly task: string;
  readonly attempt: number;
  readonly outcome: "passed" | "failed";
  readonly ms: number;
  readonly cost?: number;
  readonly end: number;
}
/** An attempt failed. `final`: nothing repeats it. A task that is wrong itself has a result, which ends at `end`. */
export interface FailedRecord {
  readonly t: "failed";
  readonly task: string;
  readonly attempt: number;
  readonly kind: "infra" | "task";
  readonly code: string;
  readonly message: string;
  readonly final: boolean;
  readonly cost?: number;
  readonly end?: number;
}

/** Code of an attempt that ended because the batch was stopped: only its cost counts. */
export const CUT_OFF = "aborted";

/** A line of a journal. */
export type JournalRecord = BatchRecord | PlannedRecord | StartedRecord | FinishedRecord | FailedRecord;

/** A record as it is in a journal. */
export interface WrittenRecord {
  readonly record: JournalRecord;
  /** The byte at which those begin that were written and synced together with it: everything before was on the disk. */
  readonly from?: number;
}

/** The line of a record, with the checksum of everything before it. */
export function encodeRecord(record: JournalRecord, from?: number): string {
  const body = JSON.stringify({ ...record, from });
  return `${body.slice(0, -1)},"sum":"${sumOf(body)}"}\n`;
}

/** The record of a line without its end; undefined for one that is not whole. */
export function decodeRecord(line: string): WrittenRecord | undefined {
  const [, head, sum] = /^(\{.*),"sum":"([0-9a-f]{8})"\}$/.exec(line) ?? [];
  if (head === undefined || sumOf(`${head}}`) !== sum) return undefined;
  const { from, ...rest } = JSON.parse(`${head}}`) as JournalRecord & { from?: number };
  const record = rest as JournalRecord;
  if (!isKnown(record)) return undefined;
  return { record, ...(from !== undefined && { from }) };
}

/** The version in the first line of a journal, also of one whose format is not known. */
export function versionOf(line: string): number | undefined {
  const [, version] = /^\{"t":"batch","version":(\d{1,9})[,}]/.exec(line) ?? [];
  return version === undefined ? undefined : Number(version);
}

function isKnown(record: JournalRecord): boolean {
  if (record.t === "batch") return typeof record.id === "string" && typeof record.tasks === "string";
  if (typeof record.task !== "string") return false;
  if (record.t === "planned") return typeof record.digest === "string";
  return Number.isSafeInteger(record.attempt) && ["started", "finished", "failed"].includes(record.t);
}

function sumOf(text: string): string {
  return crc32(text).toString(16).padStart(8, "0");
}
