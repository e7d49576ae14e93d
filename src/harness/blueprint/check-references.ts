import { nearestName } from "../../util/nearest.js";
import { type Expression, ExpressionError, faultsOfCalls, namesIn, parseExpression } from "../expression.js";
import { KINDS, textsOf } from "../nodes.js";
import type { Fault, FieldPath } from "../schema.js";
import { hasTemplate, parseTemplate } from "../template.js";
import type { Blueprint, BlueprintNode } from "../types.js";

/** The names that stand alone. */
const PLAIN = ["intent", "repo", "branch", "runId", "blueprint", "push", "sandbox", "workDir", "spec", "specPath"];
const NODE_FIELDS = ["status", "output", "exitCode", "durationMs", "commit", "error", "sessionId", "costUsd"];
/** The groups of names that only some texts have. */
const OWN_GROUPS = KINDS.flatMap(({ names }) => names ?? []);
const GROUPS = ["inputs", "env", "nodes", ...OWN_GROUPS.map(({ group }) => group)];

/** What a text may name. */
interface Known {
  readonly inputs: readonly string[];
  readonly earlier: readonly string[];
  readonly later: readonly string[];
  readonly group: string | undefined;
}

/** Checks that every template and condition names only what there is. `positions` are those of the nodes as written. */
export function checkReferences(
  { inputs, nodes }: Pick<Blueprint, "inputs" | "nodes">,
  positions: ReadonlyMap<BlueprintNode, number>,
  report: (fault: Fault) => void,
): void {
  const ids = nodes.map(({ id }) => id);
  for (const [rank, node] of nodes.entries()) {
    const known = { inputs: Object.keys(inputs), earlier: ids.slice(0, rank), later: ids.slice(rank) };
    const root: FieldPath = ["nodes", positions.get(node) ?? rank];
    for (const { place, text, as, group } of textsOf(node)) {
      const at = [...root, ...place];
      for (const message of faultsOf(text, as, { ...known, group })) report({ place: at, message });
    }
  }
}

function faultsOf(text: string, as: "template" | "condition" | "script", known: Known): string[] {
  if (as === "script") return faultsOfScript(text);
  try {
    if (as === "condition") return faultsOfExpression(parseExpression(text), known);
    return parseTemplate(text).flatMap((part) =>
      typeof part === "string" ? [] : faultsOfExpression(part.expression, known),
    );
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const literal = as === "template" ? "; text with {{ in it is written {{ '{{' }}" : "";
    return [`${error.message}${literal}`];
  }
}

/** A value in a script would be read as code. What only looks like a template, as `{{.Names}}`, is not ours. */
function faultsOfScript(text: string): string[] {
  if (!hasTemplate(text)) return [];
  const ours = [...text.matchAll(/\{\{\s*([A-Za-z]+)/g)].map(([, name = ""]) => name);
  const name = ours.find((word) => PLAIN.includes(word) || GROUPS.includes(word));
  if (name === undefined) return [];
  return [`a script takes no templates, for a value could be read as code: put {{ ${name} }} into env and use "$NAME"`];
}

function faultsOfExpression(expression: Expression, known: Known): string[] {
  return [...faultsOfCalls(expression), ...namesIn(expression).flatMap((path) => faultsOfName(path, known))];
}

function faultsOfName(path: readonly string[], known: Known): string[] {
  const [group = "", name, field, ...rest] = path;
  const whole = path.join(".");
  if (PLAIN.includes(group) && path.length === 1) return [];
  switch (group) {
    case "env":
      return path.length === 2 ? [] : [`${whole} names nothing; env takes one name, as in env.CI`];
    case "inputs":
      if (path.length === 2 && known.inputs.includes(name ?? "")) return [];
      return [`${whole} names nothing; ${among("inputs", name, known.inputs)}`];
    case "nodes":
      if (name !== undefined && known.later.includes(name))
        return [`${whole} is not known yet: ${name} does not run before`];
      if (name === undefined || !known.earlier.includes(name))
        return [`${whole} names nothing; ${among("nodes before", name, known.earlier)}`];
      if (field !== undefined && rest.length === 0 && NODE_FIELDS.includes(field)) return [];
      return [`${whole} names nothing; ${among("fields", field, NODE_FIELDS)}`];
    default: {
      const own = OWN_GROUPS.find((each) => each.group === group);
      if (own === undefined) return [`${whole} names nothing; ${among("names", group, [...PLAIN, ...GROUPS])}`];
      if (known.group === group && path.length === 2 && own.fields.includes(name ?? "")) return [];
      const there = own.fields.map((each) => `${group}.${each}`).join(" and ");
      return [`${whole} names nothing here; ${own.where} has ${there}`];
    }
  }
}

function among(what: string, name: string | undefined, known: readonly string[]): string {
  const close = name === undefined ? undefined : nearestName(name, known);
  if (close !== undefined) return `did you mean ${close}?`;
  return known.length === 0 ? `there are no ${what}` : `the ${what}: ${known.join(", ")}`;
}
