import { countOf } from "../../util/count-of.js";
import { toInertLine } from "../../util/inert-text.js";
import type { NodeReport, RunError, RunReport } from "../types.js";
import { formatChanges, formatDuration, formatRunCost, formatSecrets } from "./format.js";
import { codeBlock, inlineCode, markdownTable } from "./markdown.js";

const LONGEST_OUTPUT = 4_000;

/** The report as a text that a person reads: `report.md`, and the summary of a GitHub Actions job. */
export function reportMarkdown(report: RunReport): string {
  const parts = [
    `# ${report.status}: ${inlineCode(report.blueprint)} on ${inlineCode(report.repo)}`,
    facts(report),
    report.error === undefined
      ? undefined
      : `**${inlineCode(report.error.code)}**: ${inlineCode(report.error.message)}${hintOf(report.error)}`,
    "## Asked for",
    codeBlock(report.intent, "text").trimEnd(),
    "## Nodes",
    nodesTable(report.nodes).trimEnd(),
    ...report.nodes.filter(isWorthShowing).map(nodeSection),
    changesSection(report),
    warningsSection(report.warnings),
    nextSteps(report),
  ];
  return `${parts.filter((part) => part !== undefined && part !== "").join("\n\n")}\n`;
}

/** What to type next, by how the run ended. */
export function nextCommands({ runId, status, nodes, sandbox, changes, pushResult }: RunReport): string[] {
  const failed = nodes.find(
    (node) => node.status !== "success" && node.status !== "skipped" && node.tolerated !== true,
  );
  const hasChanges = (changes?.files.length ?? 0) > 0;
  return [
    `glovebox show ${runId}`,
    ...(hasChanges ? [`glovebox diff ${runId}`, `glovebox apply ${runId}`] : []),
    ...(status !== "success" && status !== "no_changes"
      ? [`glovebox resume ${runId}${failed === undefined || isBeforeNodes(failed) ? "" : ` --from ${failed.id}`}`]
      : []),
    ...(pushResult?.error !== undefined && hasChanges ? [`glovebox push ${runId}`] : []),
    ...(sandbox?.kept === true ? [`glovebox shell --id ${sandbox.id}`] : []),
  ];
}

/** What is installed and set up is no node of the blueprint: every session does it again, and none starts with it. */
function isBeforeNodes({ id }: NodeReport): boolean {
  return /^(?:setup-\d+|install-.+)$/.test(id);
}

function facts(report: RunReport): string {
  const { runId, sandbox, branch, baseCommit, pushResult, changes, cost } = report;
  const lines: [string, string | undefined][] = [
    ["Run", inlineCode(runId)],
    ["Sandbox", sandbox && `${inlineCode(sandbox.type)} ${inlineCode(sandbox.id)}${sandbox.kept ? ", kept" : ""}`],
    ["Branch", branch && inlineCode(branch)],
    ["Base", baseCommit && inlineCode(baseCommit)],
    ["Took", formatDuration(report.totalDurationMs)],
    ["Cost", formatRunCost(cost)],
    ["Secrets", formatSecrets(report.secrets)],
    ["Changes", changes && formatChanges(changes)],
    ["Pull request", pushResult?.prUrl && toInertLine(pushResult.prUrl)],
    ["Push", pushResult?.error && inlineCode(pushResult.error)],
  ];
  return lines.flatMap(([name, value]) => (value === undefined ? [] : [`- ${name}: ${value}`])).join("\n");
}

function nodesTable(nodes: readonly NodeReport[]): string {
  const rows = nodes.flatMap((node) => [node, ...(node.children ?? [])].map((each) => rowOf(each, each !== node)));
  return markdownTable(["Node", "Kind", "Status", "Time", "Detail"], rows);
}

function rowOf(node: NodeReport, isChild: boolean): string[] {
  const { agent, checks, exitCode, reason, error } = node;
  const detail = [
    agent && `${agent.name}${agent.turns === undefined ? "" : `, ${countOf(agent.turns, "turn")}`}`,
    checks?.map(({ id, status }) => `${id} ${status === "success" ? "✔" : "✖"}`).join(", "),
    exitCode !== undefined && exitCode !== 0 ? `exit ${exitCode}` : undefined,
    reason,
    error?.message,
  ].find((text) => text !== undefined && text !== "");
  return [
    `${isChild ? "↳ " : ""}${inlineCode(node.id)}`,
    node.kind,
    node.status,
    formatDuration(node.durationMs),
    detail === undefined ? "" : inlineCode(detail.slice(0, 200)),
  ];
}

function isWorthShowing({ status, output }: NodeReport): boolean {
  return status !== "success" && status !== "skipped" && output !== "";
}

function hintOf(error: RunError | undefined): string {
  return error?.hint === undefined ? "" : `\n\nHint: ${inlineCode(error.hint)}`;
}

function nodeSection(node: NodeReport): string {
  const again = node.command === undefined ? "" : `Again, in the sandbox: ${inlineCode(node.command)}\n\n`;
  return `### ${inlineCode(node.id)}\n\n${again}${codeBlock(node.output.slice(-LONGEST_OUTPUT), "text").trimEnd()}`;
}

function changesSection({ changes }: RunReport): string | undefined {
  if (changes === undefined || changes.files.length === 0) return undefined;
  const rows = changes.files.map(({ path, status }) => [status, inlineCode(path)]);
  return `## Changes\n\n${markdownTable(["", "File"], rows).trimEnd()}`;
}

function warningsSection(warnings: readonly string[]): string | undefined {
  return warnings.length === 0
    ? undefined
    : `## Warnings\n\n${warnings.map((text) => `- ${inlineCode(text)}`).join("\n")}`;
}

function nextSteps(report: RunReport): string {
  return `## Next\n\n${nextCommands(report)
    .map((line) => `- ${inlineCode(line)}`)
    .join("\n")}`;
}
