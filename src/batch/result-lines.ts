import { open } from "node:fs/promises";
import type { BatchResult } from "./types.js";

/** The results in a file, up to the end of those that are acknowledged: later ones may not even be whole. */
export async function* resultLines(path: string, end: number): AsyncGenerator<BatchResult, void, undefined> {
  if (end === 0) return;
  const file = await open(path, "r");
  for await (const line of file.readLines({ end: end - 1 })) yield JSON.parse(line) as BatchResult;
}
