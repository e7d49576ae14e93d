import type { BatchProgress } from "../../../batch.js";
import { countOf } from "../../../util/count-of.js";

const BETWEEN = " · ";

/** How far a batch is, as one line. */
export function progressText(progress: BatchProgress): string {
  return partsOf(progress).join(BETWEEN);
}

/** How far a batch is, in lines that are not wider than so many columns. */
export function progressLines(progress: BatchProgress, columns: number): string[] {
  const lines: string[] = [];
  for (const part of partsOf(progress)) {
    const last = lines.at(-1);
    const longer = `${last}${BETWEEN}${part}`;
    if (last !== undefined && longer.length <= columns) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  return lines;
}

function partsOf(progress: BatchProgress): string[] {
  const { total, done, running, rate, remainingMs, costUsd, retries } = progress;
  return [
    `${done} of ${total} done`,
    ...(running > 0 ? [`${running} running`] : []),
    ...outcomesOf(progress),
    ...(retries > 0 ? [`${retries} retries (${causesText(progress.causes)})`] : []),
    ...(rate === undefined ? [] : [`${rate < 10 ? rate.toFixed(1) : Math.round(rate)}/s`]),
    ...(remainingMs === undefined || done === total ? [] : [`${timeText(remainingMs)} left`]),
    ...(costUsd === undefined ? [] : [`$${costUsd.toFixed(2)}`]),
  ];
}

/** How a batch ended, as one line. */
export function summaryText(progress: BatchProgress): string {
  const { total, done, causes, elapsedMs, costUsd } = progress;
  const parts = [
    ...outcomesOf(progress),
    ...(total > done ? [`${total - done} not done`] : []),
    ...(Object.keys(causes).length > 0 ? [`failures of the infrastructure: ${causesText(causes)}`] : []),
    ...(costUsd === undefined ? [] : [`$${costUsd.toFixed(2)}`]),
  ];
  return `${countOf(total, "task")}: ${parts.join(", ")}; ${timeText(elapsedMs)}`;
}

/** Failures by their codes, the most frequent first. */
export function causesText(causes: BatchProgress["causes"]): string {
  return Object.entries(causes)
    .sort((a, b) => b[1] - a[1])
    .map(([code, count]) => `${code} ${count}`)
    .join(", ");
}

function outcomesOf({
  passed,
  failed,
  refused,
  infra,
}: Pick<BatchProgress, "passed" | "failed" | "refused" | "infra">): string[] {
  return [
    `${passed} passed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(refused > 0 ? [`${refused} refused`] : []),
    ...(infra > 0 ? [`${infra} given up`] : []),
  ];
}

function timeText(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
