import { type BatchResult, readBatchPage, readResults } from "../../../batch.js";
import { toInertLine } from "../../../util/inert-text.js";
import { parseWord, UsageError } from "../../commands.js";
import type { Invocation } from "../../invocation.js";
import { formatTable } from "../../terminal.js";
import { resultText } from "./follow-batch.js";

const COLUMNS = [
  "taskId",
  "outcome",
  "attempt",
  "exitCode",
  "timedOut",
  "durationMs",
  "setupMs",
  "costUsd",
  "endedAt",
] as const;

/** Prints the results of a batch, or of its shards. */
export async function exportBatch({ flags, screen }: Invocation, folders: readonly string[]): Promise<number> {
  const format = parseWord("--format", flags.text("format") ?? "jsonl", ["jsonl", "csv", "table", "html"]);
  if (format === "html") {
    const [folder = "", another] = folders;
    if (another !== undefined) throw new UsageError("--format html shows one batch", "name one directory");
    await screen.print(await readBatchPage(folder));
    return 0;
  }
  if (format === "csv") await screen.print(`${COLUMNS.join(",")},error\n`);
  const rows: string[][] = [];
  for await (const result of readResults(...folders)) {
    if (format === "jsonl") await screen.printJsonLine(result);
    else if (format === "csv") await screen.print(`${csvLine(result)}\n`);
    else rows.push([toInertLine(result.taskId), result.outcome, toInertLine(resultText(result))]);
  }
  if (format === "table") {
    await screen.print(formatTable([["TASK", "OUTCOME", "HOW"].map(screen.style.bold), ...rows]));
  }
  return 0;
}

function csvLine(result: BatchResult): string {
  const cells: unknown[] = [...COLUMNS.map((name) => result[name]), result.error?.code];
  return cells.map((cell) => csvCell(cell === undefined ? "" : String(cell))).join(",");
}

/** A cell that starts like a formula would be one in a spreadsheet. */
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
