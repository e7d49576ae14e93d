import {
  formatChanges,
  formatDuration,
  formatRunCost,
  type NodeReport,
  nextCommands,
  type RunReport,
} from "../../../harness.js";
import { toInert, toInertLine } from "../../../util/inert-text.js";
import { shellQuote } from "../../../util/shell.js";
import type { Style } from "../../terminal.js";

const LAST_LINES = 20;

/** The summary of a finished run, with the commands to type next. */
export function summaryOf(report: RunReport, directory: string, style: Style): string {
  const { status, error, pushResult } = report;
  const paint =
    status === "success" ? style.good : status === "no_changes" || status === "limit" ? style.warn : style.bad;
  const head = [
    `${paint(status.toUpperCase().replace("_", " "))} in ${formatDuration(report.totalDurationMs)}`,
    formatRunCost(report.cost),
    report.changes && formatChanges(report.changes),
  ].filter((part) => part !== undefined);
  const rows: [string, string | undefined][] = [
    ["Error", error && `${error.code}: ${error.message}`],
    ["Hint", error?.hint],
    ["PR", pushResult?.prUrl && `${pushResult.prUrl}${pushNote(pushResult)}`],
    ["Push", pushResult?.error ?? (pushResult?.state === "no_changes" ? "nothing to push" : undefined)],
    ["Patch", report.changes && report.changes.files.length > 0 ? `${directory}/changes.patch` : undefined],
    ["Report", `${directory}/report.html`],
    ["Kept", report.sandbox?.kept === true ? `sandbox ${report.sandbox.id}` : undefined],
    ["Next", nextCommands(report).join("  ·  ")],
  ];
  return [
    "",
    ...failureOf(report, style),
    head.join(" · "),
    ...rows.flatMap(([name, text]) =>
      text === undefined ? [] : [`  ${style.dim(name.padEnd(7))} ${toInertLine(text)}`],
    ),
    "",
  ].join("\n");
}

function pushNote({ draft, existing }: NonNullable<RunReport["pushResult"]>): string {
  const notes = [draft === true ? "draft" : undefined, existing === true ? "already open" : undefined];
  const said = notes.filter((note) => note !== undefined);
  return said.length === 0 ? "" : ` (${said.join(", ")})`;
}

/** The node that ended the run, its last lines, and how to repeat it. */
function failureOf(report: RunReport, style: Style): string[] {
  const node = report.nodes.find(
    ({ status, tolerated }) => status !== "success" && status !== "skipped" && tolerated !== true,
  );
  if (node === undefined) return [];
  const red = redOf(node);
  const again = red.command;
  const lines = outputOf(node).trimEnd().split("\n").slice(-LAST_LINES);
  const code = node.exitCode === undefined ? "" : ` with exit code ${node.exitCode}`;
  return [
    `${style.bad(node.status)}: ${style.bold(node.id)}${code}${node.error === undefined ? "" : `: ${toInertLine(node.error.message)}`}`,
    ...lines.filter((line) => line !== "").map((line) => `  ${style.dim("│")} ${toInert(line)}`),
    ...(again === undefined ? [] : [`  ${repeatOf(report, node, red, again)}`]),
    "",
  ];
}

/** How to run what failed again. An install step needs the network, which a kept sandbox does not have: the run opens it. */
function repeatOf(
  { runId, sandbox }: RunReport,
  { id }: NodeReport,
  red: ReturnType<typeof redOf>,
  command: string,
): string {
  if (sandbox?.kept !== true) return `command: ${toInertLine(command)}`;
  if (/^install-/.test(id) && red.env?.["HTTPS_PROXY"] !== undefined) return `again: glovebox resume ${runId}`;
  return `again: glovebox exec --id ${sandbox.id}${toInertLine(flagsOf(red))} -- ${toInertLine(toArguments(command))}`;
}

/** What failed: the node itself, or the first red check of a gate. */
function redOf(node: NodeReport): Pick<NodeReport, "command" | "cwd" | "env" | "hiddenEnv"> {
  return node.command === undefined ? (node.checks?.find(({ status }) => status !== "success") ?? node) : node;
}

/** Directory and variables as flags of `glovebox exec`; one whose value is hidden is taken from your own environment. */
function flagsOf({ cwd, env = {}, hiddenEnv = [] }: ReturnType<typeof redOf>): string {
  const words = [
    ...(cwd === undefined ? [] : ["--cwd", cwd]),
    ...Object.entries(env).flatMap(([name, value]) => ["-e", `${name}=${value}`]),
    ...hiddenEnv.flatMap((name) => ["-e", name]),
  ];
  return words.map((word) => ` ${toWord(word)}`).join("");
}

function toWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return toInertLine(word) === word ? shellQuote([word]) : toAnsiC(word);
}

/** A command as arguments of `glovebox exec`: quoted words unchanged, anything else through `sh -c`. */
function toArguments(command: string): string {
  if (/^(?:'(?:[^']|'\\'')*'(?: |$))+$/.test(command)) return command;
  if (!command.includes("\n")) return shellQuote(["sh", "-c", command]);
  return `sh -c ${toAnsiC(command)}`;
}

/** Quoted so that bash and zsh read the escapes of inert text as the characters they stand for. */
function toAnsiC(text: string): string {
  return `$'${toInertLine(text.replace(/[\\']/g, "\\$&"))}'`;
}

function outputOf(node: NodeReport): string {
  const red = node.checks?.find(({ status }) => status !== "success")?.output;
  return red ?? node.output;
}
