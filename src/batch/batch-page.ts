import { redact } from "../util/redact.js";
import type { BatchPaths } from "./batch-folder.js";
import type { PlannedTask } from "./plan-tasks.js";
import { resultLines } from "./result-lines.js";
import type { JournalState, TaskState } from "./task-states.js";
import type { BatchResult, TaskOutcome } from "./types.js";

/** No script runs in it and nothing is fetched, also if something should get through. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/** More rows than this make a page that nobody can scroll through. */
const MOST_ROWS = 5000;
/** Whose output is shown. */
const MOST_OUTPUTS = 200;
const SHOWN = 2000;
const ORDER: readonly (TaskOutcome | undefined)[] = ["infra", "refused", "failed", undefined, "passed"];

/**
 * The results of a batch as one page for a browser, without scripts and without anything from elsewhere. Secrets in `env`, in the variables of the
 * tasks and in those of this process are hidden: people send pages to each other.
 */
export async function batchPage(
  paths: BatchPaths,
  state: JournalState,
  tasks: readonly PlannedTask[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { html, formatCost, formatDuration, REPORT_STYLE } = await import("../harness/parts.js");
  const rows = tasks
    .map((task) => ({ task: task.id, state: state.tasks.get(task.id) }))
    .sort((a, b) => ORDER.indexOf(a.state?.outcome) - ORDER.indexOf(b.state?.outcome));
  const counts = (outcome: TaskOutcome): number => rows.filter((row) => row.state?.outcome === outcome).length;
  const done = rows.filter(({ state: of }) => of?.outcome !== undefined).length;
  const outputs = await outputsOf(
    resultLines(paths.results, state.resultsEnd),
    new Map(
      tasks
        .filter(({ id }) => state.tasks.get(id)?.outcome === "failed")
        .map(({ id, task }) => [id, { ...env, ...("env" in task ? task.env : undefined) }]),
    ),
  );
  const facts: [string, string][] = [
    ["Tasks", `${done} of ${rows.length} done`],
    ["Passed", String(counts("passed"))],
    ["Failed", String(counts("failed"))],
    ["Refused", String(counts("refused"))],
    ["Infrastructure", String(counts("infra"))],
    ...(state.cost > 0 ? [["Cost", formatCost(state.cost)] as [string, string]] : []),
  ];
  const causes = [...state.causes].sort((a, b) => b[1] - a[1]);
  const { markup } = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>Batch ${state.header?.id}</title><style>${{ markup: REPORT_STYLE }}</style></head><body><main>
<h1>Batch <span class="badge ${counts("passed") === rows.length ? "success" : "failed"}">${done} of ${rows.length}</span></h1>
<div class="dim"><code>${state.header?.id}</code> · ${state.header?.createdAt}</div>
<div class="facts">${facts.map(([name, value]) => html`<div class="fact"><b>${name}</b><span>${value}</span></div>`)}</div>
${causes.length === 0 ? undefined : html`<h2>Failures of the infrastructure</h2><div class="card"><table class="checks">${causes.map(([code, count]) => html`<tr><td><code>${code}</code></td><td>${count}</td></tr>`)}</table></div>`}
<h2>Tasks</h2><div class="card"><table class="checks">${rows.slice(0, MOST_ROWS).map(({ task, state: of }) => {
    const output = outputs.get(task);
    const note = redact(noteOf(of), { env });
    const hasRun = of?.outcome === "passed" || of?.outcome === "failed";
    return html`<tr><td class="mono">${task}${note === "" ? undefined : html`<div class="dim">${note}</div>`}${output === undefined ? undefined : html`<details><summary class="dim">output</summary><pre class="out">${output}</pre></details>`}</td><td class="word ${of?.outcome === "passed" ? "good" : "bad"}">${of?.outcome ?? "not done"}</td><td class="word dim">${hasRun ? formatDuration(of.ms) : undefined}</td></tr>`;
  })}</table>${rows.length > MOST_ROWS ? html`<p class="dim">and ${rows.length - MOST_ROWS} more, in results.jsonl</p>` : undefined}</div>
</main></body></html>
`;
  return markup;
}

function noteOf(state: TaskState | undefined): string {
  const attempts = (state?.attempts ?? 0) > 1 ? `${state?.attempts} attempts` : "";
  const failure =
    state?.outcome !== undefined && state.failure ? `${state.failure.code}: ${state.failure.message}` : "";
  return [failure, attempts].filter((part) => part !== "").join(" · ");
}

/** The end of what these tasks wrote, for the first of them, without the secrets among their variables. */
async function outputsOf(
  results: AsyncIterable<BatchResult>,
  tasks: ReadonlyMap<string, Readonly<Record<string, string>>>,
): Promise<Map<string, string>> {
  const outputs = new Map<string, string>();
  if (tasks.size === 0) return outputs;
  for await (const { taskId, stdout = "", stderr = "", timedOut, exitCode } of results) {
    const env = tasks.get(taskId);
    if (env === undefined || (outputs.size >= MOST_OUTPUTS && !outputs.has(taskId))) continue;
    const end = timedOut === true ? "killed at its deadline" : `exit code ${exitCode}`;
    // A secret that is cut in two would not be found any more.
    const shown = [stdout, stderr].map((text) => redact(text, { env }).slice(-SHOWN));
    outputs.set(taskId, [...shown, end].join("\n").trim());
  }
  return outputs;
}
