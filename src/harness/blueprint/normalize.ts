import { DEFAULT_RUN_TIMEOUT } from "../../sandbox/types.js";
import { defined } from "../../util/defined.js";
import { agentOf, kindOf } from "../nodes.js";
import { type FieldPath, type ReportFault, slugOf, toLimits, toMs } from "../schema.js";
import type {
  Blueprint,
  BlueprintNode,
  BlueprintSandbox,
  BlueprintSpec,
  Condition,
  InputSpec,
  NodeSpec,
} from "../types.js";
import { checkReferences } from "./check-references.js";
import { orderNodes } from "./order-nodes.js";

/** How long an agent may be silent unless the blueprint says otherwise. */
export const DEFAULT_IDLE = 600_000;
const DEFAULT_RETRY = { max: 2, backoff: 5_000, on: ["rate_limit", "network", "crash", "unavailable"] } as const;

/** Turns a blueprint as it is written, of the right shape already, into one that can be run; reports what is wrong. */
export function normalizeBlueprint(spec: BlueprintSpec, report: ReportFault): Blueprint {
  const written = spec.nodes.map((node, at) => toNode(node, at, report));
  const positions = new Map(written.map((node, at) => [node, at]));
  const nodes = orderNodes(written, report);
  const inputs = toInputs(spec, report);
  checkReferences({ inputs, nodes }, positions, report);
  checkSessions(nodes, positions, report);
  return {
    version: 1,
    name: spec.name,
    ...defined({ description: spec.description }),
    inputs,
    sandbox: toSandbox(spec.sandbox),
    limits: { wall: DEFAULT_RUN_TIMEOUT, idle: DEFAULT_IDLE, ...toLimits(spec.limits, ["limits"], report) },
    nodes,
    expectsChanges: spec.expectsChanges ?? nodes.some((node) => kindOf(node).expectsChanges),
  };
}

function toNode(spec: NodeSpec, at: number, report: ReportFault): BlueprintNode {
  const kind = kindOf(spec);
  const base = toBase(spec, at, report);
  return { ...base, kind: kind.name, ...kind.normalize(spec, ["nodes", at], report) } as BlueprintNode;
}

function toBase(spec: NodeSpec, at: number, report: ReportFault): Omit<BlueprintNode, "kind"> {
  const place: FieldPath = ["nodes", at];
  const id = spec.id ?? slugOf(spec.name ?? "");
  if (id === undefined) report({ place, message: "has no id" });
  const { retry = {} } = spec;
  return {
    id: id ?? `node-${at + 1}`,
    name: spec.name ?? id ?? `node-${at + 1}`,
    needs: spec.needs ?? [],
    retry: {
      ...DEFAULT_RETRY,
      ...defined({
        max: retry.max,
        on: retry.on,
        backoff: toMs(retry.backoff, [...place, "retry", "backoff"], report),
      }),
    },
    continueOnError: spec.continueOnError ?? false,
    env: spec.env ?? {},
    secrets: spec.secrets ?? [],
    ...defined({
      description: spec.description,
      when: toCondition(spec, place, report),
      timeout: toMs(spec.timeout, [...place, "timeout"], report),
      cwd: spec.cwd,
    }),
  };
}

function toCondition({ when, skip }: NodeSpec, place: FieldPath, report: ReportFault): Condition | undefined {
  if (skip === undefined) return when;
  if (when !== undefined) report({ place, message: "has both when and skip; give one of them" });
  return async (context) => !(await skip(context));
}

function toSandbox(spec: BlueprintSpec["sandbox"] = {}): BlueprintSandbox {
  const { allow = [], env = {}, mounts = [], setup = [], ...rest } = spec;
  return { allow, env, mounts, setup, ...rest };
}

function toInputs({ inputs = {} }: BlueprintSpec, report: ReportFault): Record<string, InputSpec> {
  const entries = Object.entries(inputs).map(([name, spec]): [string, InputSpec] => {
    const { type = "string", required = false } = spec;
    const place = ["inputs", name];
    if (spec.default !== undefined && typeof spec.default !== type) {
      report({ place: [...place, "default"], message: `must be a ${type}, as the type says` });
    }
    if (spec.default !== undefined && required) {
      report({ place, message: "is required and has a default; give one of them" });
    }
    return [name, { type, required, ...defined({ description: spec.description, default: spec.default }) }];
  });
  return Object.fromEntries(entries);
}

/** A session can be continued when an agent node before has one. */
function checkSessions(
  nodes: readonly BlueprintNode[],
  positions: ReadonlyMap<BlueprintNode, number>,
  report: ReportFault,
): void {
  for (const [rank, node] of nodes.entries()) {
    const { task, place: path = [] } = agentOf(node) ?? {};
    if (task?.continue === undefined) continue;
    const target = nodes.slice(0, rank).find(({ id }) => id === task.continue);
    const place = ["nodes", positions.get(node) ?? rank, ...path, "continue"];
    const before = target && agentOf(target);
    if (before?.place.length !== 0) report({ place, message: `there is no agent node ${task.continue} before` });
    else if (before.task.agent !== task.agent)
      report({ place, message: `${task.continue} is a session of another agent` });
  }
}
