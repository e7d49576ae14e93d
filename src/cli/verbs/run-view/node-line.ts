import { formatCost, formatDuration, type NodeReport } from "../../../harness.js";
import { countOf } from "../../../util/count-of.js";
import { toInertLine } from "../../../util/inert-text.js";
import type { Style } from "../../terminal.js";

const MARKS: Readonly<Record<NodeReport["status"], string>> = {
  success: "✔",
  failure: "✖",
  skipped: "∙",
  cancelled: "■",
  limit: "◆",
};

/** One line about a finished node. */
export function nodeLine(node: NodeReport, style: Style, isChild = false): string {
  const paint = node.status === "success" ? style.good : node.status === "skipped" ? style.dim : style.bad;
  const detail = detailOf(node);
  const name = `${isChild ? "  ↻ " : " "}${paint(MARKS[node.status])} ${node.id.padEnd(isChild ? 10 : 14)}`;
  return `${name} ${toInertLine(detail).slice(0, 60).padEnd(44)} ${formatDuration(node.durationMs).padStart(7)}`;
}

function detailOf({ agent, checks, command, error, reason, commit, reused }: NodeReport): string {
  if (reused === true) return "reused from before";
  if (reason !== undefined) return reason;
  if (agent !== undefined) {
    const turns = agent.turns === undefined ? undefined : countOf(agent.turns, "turn");
    return [agent.name, turns, formatCost(agent.costUsd), error?.message]
      .filter((part) => part !== undefined)
      .join(" · ");
  }
  if (checks !== undefined)
    return checks.map(({ id, status }) => `${id} ${status === "success" ? "✔" : "✖"}`).join("  ");
  if (commit !== undefined) return commit.slice(0, 10);
  return error?.message ?? command ?? "";
}
