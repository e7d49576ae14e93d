import { EXIT_CODES, findRunDirectory, type HarnessOptions, type Reporter, type RunReport } from "../../../harness.js";
import { UsageError } from "../../commands.js";
import type { Flags, Invocation } from "../../invocation.js";
import { reportError, toFailure } from "../../report-error.js";
import { createStyle } from "../../terminal.js";
import { createActionsReporter } from "./actions-reporter.js";
import { createLiveReporter } from "./live-reporter.js";
import { createPlainReporter } from "./plain-reporter.js";
import { summaryOf } from "./summary.js";

/** Errors that another command line would not fix. */
const ENVIRONMENT = new Set([
  ...["unauthenticated", "permission_denied", "unavailable", "backend_lost", "no_space", "missing_dependency"],
  ...["no_isolation", "closed", "tampered", "internal"],
]);

/** Shows a run and its result; returns the exit code. Only the result goes to standard output. */
export async function followRun(
  { flags, screen, interruption }: Invocation,
  start: (more: Pick<HarnessOptions, "reporter" | "signal">) => Promise<RunReport>,
): Promise<number> {
  const form = formOf(flags);
  const style = createStyle(screen.stderr, process.env);
  const shown = flags.has("quiet")
    ? { stop: () => undefined }
    : screen.stderr.isTTY === true
      ? createLiveReporter(screen.stderr, style)
      : createPlainReporter(screen.stderr, style);
  const reporters: Reporter[] = [shown];
  if (form === "stream") reporters.push({ event: (event) => screen.printJsonLine(event) });
  if (process.env["GITHUB_ACTIONS"] === "true" && form === "text") {
    reporters.splice(0, 1, createActionsReporter(screen.stdout, process.env));
  }
  try {
    const report = await start({ reporter: reporters, signal: interruption.signal });
    shown.stop();
    if (report.status !== "cancelled") interruption.cameTooLate();
    if (form === "report") await screen.printJson(report);
    if (!flags.has("quiet")) {
      const { path } = await findRunDirectory(report.runId);
      await screen.write(screen.stderr, summaryOf(report, path, style));
    }
    return exitCodeOf(report, flags);
  } finally {
    shown.stop();
  }
}

/** Prints why a run could not start; returns the exit code. */
export async function environmentFailure(
  { screen, flags, interruption }: Invocation,
  error: unknown,
  verb: "run" | "resume",
): Promise<number> {
  const { code } = toFailure(error);
  const isPrinted = interruption.ending === undefined || code !== "aborted";
  const exitCode = await reportError(error, screen, { isJson: flags.has("json"), isPrinted, verb });
  if (ENVIRONMENT.has(code)) return EXIT_CODES.environment;
  return exitCode === EXIT_CODES.success ? exitCode : EXIT_CODES.usage;
}

function formOf(flags: Flags): "text" | "report" | "stream" {
  if (!flags.has("json")) return "text";
  const value = flags.text("json");
  if (value === "stream") return "stream";
  if (value === "") return "report";
  throw new UsageError(
    `--json takes nothing or =stream, not "${value}"`,
    "put --json at the end, or write --json=stream",
  );
}

function exitCodeOf({ exitCode }: RunReport, flags: Flags): number {
  if (exitCode === EXIT_CODES.noChanges && flags.has("allow-no-changes")) return 0;
  if (exitCode === EXIT_CODES.push && flags.has("push-optional")) return 0;
  return exitCode;
}
