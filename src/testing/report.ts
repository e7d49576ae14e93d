import type { ConformanceReport } from "./types.js";

/** Formats a report as a plain table: one line per case with the reason, then the counts. */
export function formatReport(report: ConformanceReport): string {
  const width = Math.max(4, ...report.results.map(({ id }) => id.length));
  const lines = report.results.map(({ id, status, durationMs, reason }) => {
    const time = `${durationMs} ms`.padStart(10);
    const why = reason === undefined ? "" : `  ${toOneLine(reason)}`;
    return `${status.padEnd(7)}  ${id.padEnd(width)}  ${time}${why}`;
  });
  const counts = `${report.passed} passed, ${report.failed} failed, ${report.skipped} skipped`;
  return [`conformance of ${report.backend}`, ...lines, `${report.backend}: ${counts}`, ""].join("\n");
}

/** Reasons may contain output of a sandbox, so remove line breaks and control characters. */
function toOneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ");
}
