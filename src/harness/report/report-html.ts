import { countOf } from "../../util/count-of.js";
import type { CheckResult, NodeReport, RunReport } from "../types.js";
import { formatChanges, formatCost, formatDuration, formatRunCost, formatSecrets, formatTokens } from "./format.js";
import { html, type Markup } from "./html.js";
import { diffMarkup } from "./report-diff.js";
import { nextCommands } from "./report-markdown.js";
import { REPORT_STYLE } from "./report-style.js";

/** No script runs in it and nothing is fetched, also if something should get through. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/** The report as one file for a browser, without scripts and without anything from elsewhere. */
export function reportHtml(report: RunReport, patch: string): string {
  const { markup } = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>${report.status}: ${report.blueprint} · ${report.runId}</title><style>${{ markup: REPORT_STYLE }}</style></head><body><main>
<h1>${report.blueprint} <span class="badge ${report.status}" data-status>${report.status}</span></h1>
<div class="dim">run <code>${report.runId}</code> · ${report.startedAt}</div>
${errorMarkup(report)}${factsMarkup(report)}
<h2>Asked for</h2><div class="card"><pre>${report.intent}</pre></div>
<h2>Timeline</h2><div class="card timeline">${timelineMarkup(report)}</div>
<h2>Nodes</h2>${report.nodes.map((node) => nodeMarkup(node))}
${warningsMarkup(report.warnings)}
<h2>Changes</h2>${patch === "" ? html`<p class="dim">Nothing was changed.</p>` : diffMarkup(patch)}
<h2>Next</h2><div class="card"><pre>${nextCommands(report).join("\n")}</pre></div>
<footer>Glovebox ${report.version}</footer></main></body></html>
`;
  return markup;
}

function errorMarkup({ error }: RunReport): Markup | undefined {
  if (error === undefined) return undefined;
  const hint = error.hint === undefined ? undefined : html`<div class="dim">${error.hint}</div>`;
  return html`<p class="card notice"><b>${error.code}</b> ${error.message}${hint}</p>`;
}

function factsMarkup(report: RunReport): Markup {
  const { sandbox, branch, baseCommit, tokenUsage, pushResult } = report;
  const tokens = tokenUsage.input + tokenUsage.output + tokenUsage.cacheRead + tokenUsage.cacheWrite;
  const url = pushResult?.prUrl;
  const facts: [string, string | Markup | undefined][] = [
    ["Took", formatDuration(report.totalDurationMs)],
    ["Repository", report.repo],
    ["Sandbox", sandbox && `${sandbox.type} ${sandbox.id}${sandbox.kept ? " (kept)" : ""}`],
    ["Branch", branch],
    ["Base", baseCommit?.slice(0, 12)],
    ["Tree", report.tree?.slice(0, 12)],
    ["Cost", formatRunCost(report.cost)],
    ["Secrets", formatSecrets(report.secrets)],
    ["Tokens", tokens > 0 ? formatTokens(tokens) : undefined],
    ["Changes", report.changes && formatChanges(report.changes)],
    ["Pull request", url && /^https?:\/\//.test(url) ? html`<a href="${url}" rel="noreferrer">${url}</a>` : undefined],
    ["Push", pushResult?.error],
  ];
  const shown = facts.filter(([, value]) => value !== undefined);
  return html`<div class="facts">${shown.map(([name, value]) => html`<div class="fact"><b>${name}</b><span>${value}</span></div>`)}</div>`;
}

function timelineMarkup({ nodes, startedAt, totalDurationMs }: RunReport): Markup[] {
  const start = Date.parse(startedAt);
  const rows = nodes.flatMap((node) => [
    { node, isChild: false },
    ...(node.children ?? []).map((child) => ({ node: child, isChild: true })),
  ]);
  const ends = rows.map(({ node }) => Date.parse(node.startedAt) - start + node.durationMs);
  const span = Math.max(1, totalDurationMs, ...ends);
  const percent = (part: number): string => Math.min(100, Math.max(0, (part / span) * 100)).toFixed(2);
  return rows.map(({ node, isChild }) => {
    const left = percent(Date.parse(node.startedAt) - start);
    const width = percent(node.durationMs);
    return html`<div class="lane ${isChild ? "child" : ""}"><span class="name mono">${node.id}</span><span class="track"><span class="bar ${node.status}" style="left:${left}%;width:${width}%"></span></span><span class="time">${formatDuration(node.durationMs)}</span></div>`;
  });
}

function nodeMarkup(node: NodeReport): Markup {
  const isOpen = node.status !== "success" && node.status !== "skipped";
  const { agent } = node;
  const facts = [
    agent && [agent.name, agent.version, agent.model].filter((part) => part !== undefined).join(" "),
    agent?.turns === undefined ? undefined : countOf(agent.turns, "turn"),
    agent && formatCost(agent.costUsd),
    node.rounds ? countOf(node.rounds, "repair") : undefined,
    node.exitCode === undefined ? undefined : `exit ${node.exitCode}`,
    node.reused === true ? "taken over" : undefined,
    node.reason,
  ].filter((part) => part !== undefined);
  return html`<details class="node" data-node="${node.id}" ${isOpen ? "open" : ""}><summary><b class="mono">${node.id}</b><span class="badge ${node.status}">${node.status}</span><span class="dim">${node.kind}</span><span class="dim">${facts.join(" · ")}</span><span class="grow"></span><span class="dim">${formatDuration(node.durationMs)}</span></summary><div>
${node.command === undefined ? undefined : html`<code>$ ${node.command}</code>`}
${node.error === undefined ? undefined : html`<p class="bad">${node.error.code}: ${node.error.message}</p>${node.error.hint === undefined ? undefined : html`<p class="dim">${node.error.hint}</p>`}`}
${node.checks === undefined ? undefined : checksMarkup(node.checks)}
${node.output === "" ? undefined : html`<div class="out"><pre>${node.output}</pre></div>`}
${node.outputTruncated ? html`<p class="dim">Shortened; all of it is in ${node.stdoutPath ?? "the logs of the node"}.</p>` : undefined}
${(node.children ?? []).map(nodeMarkup)}</div></details>`;
}

function checksMarkup(checks: readonly CheckResult[]): Markup {
  const rows = checks.map(
    ({ id, status, durationMs, output }) =>
      html`<tr><td class="${status === "success" ? "good" : "bad"}">${status === "success" ? "✔" : "✖"}</td><td class="mono">${id}</td><td class="dim">${formatDuration(durationMs)}</td></tr>${
        status === "success" || output === ""
          ? undefined
          : html`<tr><td></td><td colspan="2"><div class="out"><pre>${output}</pre></div></td></tr>`
      }`,
  );
  return html`<table class="checks">${rows}</table>`;
}

function warningsMarkup(warnings: readonly string[]): Markup | undefined {
  if (warnings.length === 0) return undefined;
  return html`<h2>Warnings</h2><div class="card notice warn"><ul>${warnings.map((text) => html`<li>${text}</li>`)}</ul></div>`;
}
