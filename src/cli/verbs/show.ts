import { SandboxError } from "../../../contracts/errors.js";
import { findRunDirectory, readReport, stateOfRun } from "../../harness.js";
import { findRunId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { nodeLine } from "./run-view/node-line.js";
import { summaryOf } from "./run-view/summary.js";

/** `glovebox show <run>`. */
export async function run({ operands, flags, screen }: Invocation): Promise<number> {
  const runId = await findRunId(operands[0] ?? "");
  const directory = await findRunDirectory(runId);
  if (flags.has("path")) {
    await (flags.has("json") ? screen.printJson({ path: directory.path }) : screen.print(`${directory.path}\n`));
    return 0;
  }
  const report = await readReport(directory);
  if (report === undefined) throw new SandboxError("not_found", `Run "${runId}" has no report yet`);
  if (flags.has("json")) {
    await screen.printJson(report);
    return 0;
  }
  const state = await stateOfRun(directory, report);
  const { style } = screen;
  const nodes = report.nodes.flatMap((node) => [
    ...(node.children ?? []).map((child) => nodeLine(child, style, true)),
    nodeLine(node, style),
  ]);
  const head = `${style.bold(report.blueprint)} · run ${runId} · ${state} · ${report.startedAt}`;
  const end =
    report.finishedAt === undefined
      ? `\n${state}: glovebox ${state === "interrupted" ? `resume ${runId}` : `logs ${runId} -f`}\n`
      : summaryOf(report, directory.path, style);
  await screen.print(`${[head, ...nodes].join("\n")}\n${end}`);
  return 0;
}
