/** One thing that the demo tried. */
interface Row {
  kind: "did" | "refused";
  what: string;
  outcome: string;
  asExpected: boolean;
  durationMs: number;
}

/** What a trial came to. */
export interface Outcome {
  asExpected: boolean;
  outcome: string;
}

const rows: Row[] = [];

/** Tries one thing, and notes what came of it and whether that was right. */
export async function attempt(kind: Row["kind"], what: string, trial: () => Promise<Outcome>): Promise<void> {
  const began = performance.now();
  const { asExpected, outcome } = await trial().catch((error: unknown) => ({
    asExpected: false,
    outcome: `unexpected: ${error instanceof Error ? error.message : String(error)}`,
  }));
  rows.push({ kind, what, outcome: toOneLine(outcome), asExpected, durationMs: performance.now() - began });
}

/** Prints the table and says whether everything went as it must. */
export function printReport(): boolean {
  const width = Math.max(...rows.map(({ what }) => what.length));
  const outcomeWidth = Math.max(...rows.map(({ outcome }) => outcome.length));
  for (const kind of ["did", "refused"] as const) {
    console.log(`\nWhat it ${kind}`);
    for (const row of rows.filter((each) => each.kind === kind)) {
      const mark = row.asExpected ? "  ok   " : "  WRONG";
      const time = `${row.durationMs.toFixed(1)} ms`.padStart(10);
      console.log(`${mark} ${row.what.padEnd(width)}  ${row.outcome.padEnd(outcomeWidth)} ${time}`);
    }
  }
  return rows.every(({ asExpected }) => asExpected);
}

/** The first line, short enough for a table and free of what could drive a terminal. */
function toOneLine(text: string): string {
  const line = (text.trim().split("\n")[0] ?? "").replace(/\p{Cc}/gu, " ");
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}
