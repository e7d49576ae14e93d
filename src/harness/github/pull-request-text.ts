import { toInert, toInertLine } from "../../util/inert-text.js";
import {
  codeBlock,
  formatChanges,
  formatDuration,
  formatRunCost,
  inlineCode,
  markdownTable,
  plainName,
} from "../report.js";
import type { NodeReport, RunReport } from "../types.js";
import { toInertReferences } from "./inert-references.js";

const LONGEST_TITLE = 256;
const LONGEST_BODY = 60_000;
const LONGEST_SUBJECT = 100;
const LONGEST_INTENT = 20_000;
const MOST_FILES = 50;

/**
 * `[harness] {intent}` on one line, cut at 256 characters, never within one. Without mentions and references: a title
 * becomes the message of a squashed commit.
 */
export function pullRequestTitle(intent: string): string {
  const line = `[harness] ${intent}`.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  return [...toInertReferences(toInertLine(line))].slice(0, LONGEST_TITLE).join("");
}

/** The message of the commit of whatever no node committed: what was asked for, and the run that did it. */
export function commitMessageOf({
  intent,
  runId,
  blueprint,
}: Pick<RunReport, "intent" | "runId" | "blueprint">): string {
  const title = [...pullRequestTitle(intent)];
  const isWhole = title.length <= LONGEST_SUBJECT;
  const subject = isWhole ? title.join("") : `${title.slice(0, LONGEST_SUBJECT - 1).join("")}…`;
  const whole = toInertReferences(toInert(lines(intent).join("\n")));
  const more = isWhole && !whole.includes("\n") ? "" : `${whole}\n\n`;
  return `${subject}\n\n${more}Blueprint: ${toInertReferences(toInertLine(blueprint))}\nRun: ${runId}\n`;
}

/** What the pull request says: what was asked, what was checked, what was changed, and how to continue. */
export function pullRequestBody(report: RunReport): string {
  const names = { Blueprint: report.blueprint, Branch: report.branch ?? "", Run: report.runId };
  const head = Object.entries(names).map(([what, name]) => `${what}: ${name && plainName(name)}`);
  const parts = [
    head.join("\n"),
    incompleteNote(report),
    quote(report.intent),
    checksTable(report.nodes),
    changesList(report),
    costLine(report),
    `Continue it: ${inlineCode(`glovebox resume ${report.runId}`)} · look at it: ${inlineCode(`glovebox show ${report.runId}`)}`,
  ];
  const body = parts.filter((part) => part !== undefined && part !== "").join("\n\n");
  return body.length <= LONGEST_BODY ? `${body}\n` : `${firstLines(body)}\n\n…\n`;
}

/** Whole lines only: what is inline code in a line is none without its end. */
function firstLines(body: string): string {
  return body.slice(0, body.lastIndexOf("\n", LONGEST_BODY));
}

function incompleteNote({ status }: RunReport): string | undefined {
  return status === "success" ? undefined : `**Incomplete**: the run ended with ${inlineCode(status)}.`;
}

/** As code: whatever is in the intent is no mention, no reference and no markup there. */
function quote(intent: string): string {
  const text = lines(intent).join("\n");
  const shown = text.length <= LONGEST_INTENT ? text : `${[...text.slice(0, LONGEST_INTENT)].slice(0, -1).join("")}…`;
  return lines(codeBlock(shown, "text"))
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");
}

function lines(text: string): string[] {
  return text.trim().split(/\r\n|[\n\r\u2028\u2029]/);
}

function checksTable(nodes: readonly NodeReport[]): string | undefined {
  const rows = nodes.flatMap((node) =>
    (node.checks ?? []).map((check) => [
      inlineCode(node.id),
      inlineCode(check.id),
      check.status === "success" ? "✔ passed" : `✖ ${check.status}`,
      formatDuration(check.durationMs),
      String(node.rounds ?? 0),
    ]),
  );
  return rows.length === 0 ? undefined : markdownTable(["Gate", "Check", "Result", "Time", "Repairs"], rows).trimEnd();
}

function changesList({ changes }: RunReport): string | undefined {
  if (changes === undefined) return undefined;
  const shown = changes.files.slice(0, MOST_FILES).map(({ path, status }) => `- ${status}: ${inlineCode(path)}`);
  const rest = changes.files.length - shown.length;
  const more = rest > 0 ? [`- and ${rest} more`] : [];
  return [`Changes: ${formatChanges(changes)}`, "", ...shown, ...more].join("\n");
}

function costLine({ cost, totalDurationMs }: RunReport): string {
  const price = formatRunCost(cost);
  return `Took ${formatDuration(totalDurationMs)}${price === undefined ? "" : `, ${price}`}.`;
}
