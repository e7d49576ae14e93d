import { type BatchNote, type BatchOptions, type BatchProgress, type BatchResult, runBatch } from "../../../batch.js";
import { showCommand } from "../../../util/shell.js";
import type { Invocation } from "../../invocation.js";
import { LiveView } from "./live-view.js";
import { progressText, summaryText } from "./progress-text.js";

/** How often a line says how far it is, where nothing is drawn, in milliseconds. */
const LINE_EVERY = 10_000;
/** As `glovebox run` exits when it is stopped at a limit. */
const LIMIT = 5;

/** Runs a batch, shows how it goes and prints its results. Returns the exit code. */
export async function followBatch({ flags, screen, interruption }: Invocation, options: BatchOptions): Promise<number> {
  const isLive = screen.stderr.isTTY === true;
  const printsLines = flags.has("json") || screen.stdout.isTTY !== true;
  const { signal } = interruption;
  let busyWith: ((what: string) => void) | undefined;
  const causes = new Set<string | undefined>();
  const noteOf = (note: BatchNote): void => {
    const { type, message, taskId, code } = note;
    const about = taskId === undefined ? "" : `${taskId}: `;
    if (type === "progress") busyWith?.(message);
    else if (type === "retry") {
      // The first of each kind says why; how many there are is in the progress.
      if (!causes.has(code)) void screen.printNote(`trying again: ${about}${message}`);
      causes.add(code);
    } else if (type === "leak") void screen.printError(message, "glovebox reap tries again");
    else if (type === "warning" || type === "infra") {
      void screen.printNote(`${type === "warning" ? "warning: " : "given up: "}${about}${message}`);
    }
  };
  const batch = runBatch({
    ...options,
    signal,
    onNote: noteOf,
    onStage: (taskId, stage) => view.set(taskId, stage),
  });
  const ids = options.tasks.map(({ id }) => id);
  const view = new LiveView(screen.stderr, process.env, ids, () => batch.progress);
  const lines = isLive ? undefined : setInterval(() => void screen.printNote(progressText(batch.progress)), LINE_EVERY);
  try {
    const results = batch[Symbol.asyncIterator]();
    // Until the first result, images are pulled and built.
    let next = await screen.during("starting", (progress) => {
      busyWith = (what) => progress.update(what);
      return results.next();
    });
    for (; next.done !== true; next = await results.next()) {
      if (printsLines) await screen.printJsonLine(next.value);
      view.set(next.value.taskId, next.value.outcome, resultText(next.value));
    }
  } finally {
    clearInterval(lines);
    view.stop();
    // Without a window, it was refused before anything began.
    if (batch.progress.window > 0) {
      await screen.printNote(summaryText(batch.progress));
      await screen.printNote(`results: ${options.out}/results.jsonl, page: ${options.out}/report.html`);
      for (const line of nextSteps(batch.progress, options.out)) await screen.printNote(line);
    }
  }
  return exitCodeOf(batch.progress, batch.stopped === "max-cost");
}

/** How to go on with what has no result. */
function nextSteps({ total, done, infra }: BatchProgress, out: string): string[] {
  const line = (...words: string[]): string => showCommand(["glovebox", "batch", ...words]);
  return [
    ...(done < total ? [`to continue: ${line("resume", out)}`] : []),
    ...(infra > 0 ? [`to run what was given up once more: ${line("retry", out, "--only", "infra")}`] : []),
  ];
}

function exitCodeOf({ passed, total }: BatchProgress, isAtLimit: boolean): number {
  if (passed === total) return 0;
  return isAtLimit ? LIMIT : 1;
}

/** How a task ended, in a few words. */
export function resultText({ exitCode, timedOut, durationMs = 0, error, run }: BatchResult): string {
  if (error !== undefined) return `${error.code}: ${error.message.split("\n")[0]}`;
  const how = run?.status ?? (timedOut === true ? "killed at its timeout" : `exit code ${exitCode}`);
  return `${how} after ${(durationMs / 1000).toFixed(1)} s`;
}
