import * as is from "../../util/schema.js";
import { type AnswerStyle, bounded } from "../answer.js";
import { LONGEST_WAIT } from "../limits.js";
import type { OwnedRuns, OwnRun, WantedRun } from "../runs.js";
import { CHANGES, defineTool, READS, type Tool, type ToolAnswer } from "../tool.js";

interface StatusInput {
  run_id?: string;
  wait_ms?: number;
}
interface CancelInput {
  run_id: string;
}

/** What an input of a blueprint can be. */
const inputValue: is.Schema<string | number | boolean> = is.scalar(["string", "number", "boolean"]);
const runId: is.Schema<string> = is.noted(is.text, { description: "The run_id that run_start returned." });

const RUN_FIELDS: is.JsonSchema = {
  type: "object",
  required: ["run_id", "state"],
  properties: {
    run_id: { type: "string" },
    blueprint: { type: "string" },
    state: { type: "string" },
    started_at: { type: "string" },
    nodes: {
      type: "array",
      items: { type: "object", properties: { id: { type: "string" }, state: { type: "string" } } },
    },
    last: { type: "array", items: { type: "string" } },
    report: { type: "string" },
    patch: { type: "string" },
  },
};

/** The tools that start and follow runs of the harness: `run_start`, `run_status` and `run_cancel`. */
export function runTools(runs: OwnedRuns, style: AnswerStyle): Tool[] {
  return [startTool(runs, style), statusTool(runs, style), cancelTool(runs, style)];
}

function startTool(runs: OwnedRuns, style: AnswerStyle): Tool {
  return defineTool<WantedRun>({
    name: "run_start",
    title: "Start a run",
    description:
      "Start a run of a blueprint: coding agents and checks that work on the user's repository in a sandbox of their own, for minutes or hours. " +
      `Answers at once with a run_id for run_status and run_cancel. Blueprints: ${runs.blueprints.join(", ")}. ` +
      "A run ends with this session; the user decides what becomes of its changes.",
    input: is.object<WantedRun>({
      blueprint: is.required(is.noted(is.text, { description: `One of ${runs.blueprints.join(", ")}.` })),
      intent: is.required(is.noted(is.text, { description: "What is to be done, for the agents of the run." })),
      inputs: is.noted(is.record(inputValue), {
        description: "Inputs that the blueprint declares.",
      }),
    }),
    output: RUN_FIELDS,
    isText: false,
    hints: { readOnly: false, destructive: false, idempotent: false, openWorld: true },
    usesSandbox: false,
    run: async (wanted, { owner, deadline }) => await answer(await runs.start(owner, wanted, deadline), style),
  });
}

function statusTool(runs: OwnedRuns, style: AnswerStyle): Tool {
  return defineTool<StatusInput>({
    name: "run_status",
    title: "Follow a run",
    description:
      "Show what a run does, and once it is over its report and its changes as a patch. Without run_id: all your runs.",
    input: is.object<StatusInput>({
      run_id: runId,
      wait_ms: is.noted(is.whole(0, LONGEST_WAIT), {
        description: "If it still runs, wait this long for its next step or its end.",
        default: 0,
      }),
    }),
    output: { type: "object", properties: { runs: { type: "array", items: RUN_FIELDS }, ...RUN_FIELDS.properties } },
    isText: false,
    hints: READS,
    usesSandbox: false,
    async run({ run_id: id, wait_ms: wait = 0 }, { owner, deadline, signal, report }) {
      if (id === undefined) return listAnswer(runs.list(owner));
      const { lines } = runs.byId(owner, id);
      report(lines.at(-1) ?? "");
      await runs.next(owner, id, Math.min(deadline, performance.now() + wait), signal);
      return await answer(runs.byId(owner, id), style);
    },
  });
}

function cancelTool(runs: OwnedRuns, style: AnswerStyle): Tool {
  return defineTool<CancelInput>({
    name: "run_cancel",
    title: "End a run",
    description: "End a run cleanly: what it has done is kept for the user. Does nothing to a run that is over.",
    input: is.object<CancelInput>({ run_id: is.required(runId) }),
    output: RUN_FIELDS,
    isText: false,
    hints: { ...CHANGES, idempotent: true },
    usesSandbox: false,
    run: async ({ run_id: id }, { owner, deadline }) => await answer(await runs.cancel(owner, id, deadline), style),
  });
}

function stateOf({ report, failure }: OwnRun): string {
  return report?.status ?? (failure === undefined ? "running" : "error");
}

function listAnswer(all: readonly OwnRun[]): ToolAnswer {
  const fields = all.map((run) => ({
    run_id: run.id,
    blueprint: run.blueprint,
    state: stateOf(run),
    started_at: run.startedAt,
  }));
  const lines = fields.map(({ run_id: id, blueprint, state }) => `${id}  ${blueprint}  ${state}`);
  return { text: lines.join("\n") || "there is none", fields: { runs: fields } };
}

async function answer(run: OwnRun, style: AnswerStyle): Promise<ToolAnswer> {
  const half: AnswerStyle = { ...style, maxOutput: Math.floor(style.maxOutput / 2) };
  const state = stateOf(run);
  const fields = { run_id: run.id, blueprint: run.blueprint, state, started_at: run.startedAt };
  const first = `run_id ${run.id}\nstate ${state}`;
  if (run.report === undefined) {
    const nodes = [...run.nodes].map(([id, of]) => ({ id, state: of }));
    const last = run.lines.map((line) => bounded(line, half));
    const failure = run.failure === undefined ? [] : [bounded(run.failure.message, half)];
    const steps = nodes.map(({ id, state: of }) => `${id}: ${of}`).join(", ");
    return {
      text: [first, steps, ...last, ...failure].filter(Boolean).join("\n"),
      fields: { ...fields, nodes, last: [...last, ...failure] },
    };
  }
  const { changesOf, reportMarkdown } = await import("../../harness.js");
  const report = bounded(reportMarkdown(run.report), half);
  const patch = bounded((await changesOf(run.id).catch(() => undefined))?.patch ?? "", half);
  const nodes = run.report.nodes.map(({ id, status }) => ({ id, state: status }));
  return {
    text: `${first}\n\n${report}${patch === "" ? "" : `\n${patch}`}`,
    fields: { ...fields, nodes, report, patch },
  };
}
