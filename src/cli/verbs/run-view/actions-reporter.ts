import { appendFileSync } from "node:fs";
import { type Reporter, type RunEvent, type RunReport, reportMarkdown } from "../../../harness.js";
import { toInert, toInertLine } from "../../../util/inert-text.js";
import type { Output } from "../../terminal.js";

/** Reports a run to GitHub Actions: groups, errors, the job's summary, and outputs for later steps. */
export function createActionsReporter(output: Output, env: Readonly<Record<string, string | undefined>>): Reporter {
  let isOpen = false;
  let atLineStart = true;
  const say = (text: string): void => {
    output.write(`${atLineStart ? "" : "\n"}${text}\n`);
    atLineStart = true;
  };
  const close = (): void => {
    if (isOpen) say("::endgroup::");
    isOpen = false;
  };
  return {
    event(event: RunEvent) {
      if (event.type === "node.started") {
        close();
        say(`::group::${toData(event.nodeId)}`);
        isOpen = true;
      }
      if (event.type === "node.output" && event.stream !== "transcript") {
        output.write(toLog(event.text));
        atLineStart = event.text.endsWith("\n");
      }
      if (event.type === "node.finished") {
        close();
        const { id, status, error, exitCode } = event.result;
        const isRed = event.parentId === undefined && (status === "failure" || status === "limit");
        if (isRed)
          say(`::error title=${toProperty(id)}::${toData(error?.message ?? `exit code ${exitCode ?? "unknown"}`)}`);
      }
      if (event.type === "warning") say(`::warning::${toData(event.message)}`);
    },
    runComplete(report: RunReport) {
      close();
      if (env["GITHUB_STEP_SUMMARY"]) appendFileSync(env["GITHUB_STEP_SUMMARY"], reportMarkdown(report));
      if (env["GITHUB_OUTPUT"]) appendFileSync(env["GITHUB_OUTPUT"], outputsOf(report));
    },
  };
}

function outputsOf({ runId, status, branch, pushResult }: RunReport): string {
  const values = { run_id: runId, status, branch: branch ?? "", pr_url: pushResult?.prUrl ?? "" };
  return Object.entries(values)
    .map(([name, value]) => `${name}=${toInertLine(value)}\n`)
    .join("");
}

/** Keeps the runner from reading a line of output as one of its commands. */
function toLog(text: string): string {
  return toInert(text).replace(/^(\s*)(::|##\[)/gm, "$1\u200b$2");
}

function toData(text: string): string {
  return toInert(text).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function toProperty(text: string): string {
  return toData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
