import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isoTime } from "../util/iso-time.js";
import { writeFileAtomic } from "./atomic-file.js";
import { privateSubdirectory } from "./home.js";

/** The outcome of the last run of the conformance kit on a backend, on this machine. */
export interface ConformanceSummary {
  /** What it ran on: this machine, the service, or a stand-in for it. */
  readonly on: string;
  /** The number of cases per outcome: `passed`, `refused`, `not run`, `failed`. */
  readonly counts: Readonly<Record<string, number>>;
  /** ISO 8601. */
  readonly time: string;
}

/** Saves the outcome of a run for `doctor`. */
export async function saveConformance(backend: string, note: Omit<ConformanceSummary, "time">): Promise<void> {
  await writeFileAtomic(pathOf(backend), `${JSON.stringify({ ...note, time: isoTime() })}\n`);
}

/** The outcome of the last run; undefined if there was none. */
export async function lastConformance(backend: string): Promise<ConformanceSummary | undefined> {
  try {
    const note = JSON.parse(await readFile(pathOf(backend), "utf8")) as ConformanceSummary;
    return typeof note.on === "string" && typeof note.counts === "object" ? note : undefined;
  } catch {
    return undefined;
  }
}

function pathOf(backend: string): string {
  return join(privateSubdirectory("conformance"), `${encodeURIComponent(backend)}.json`);
}
