import { SandboxError } from "../../contracts/errors.js";
import { nearestName } from "../util/nearest.js";
import type { Blueprint, BlueprintNode } from "./types.js";

/** The place of a node in its blueprint; `option` is what names it. */
export function indexOfNode({ name, nodes }: Blueprint, id: string, option: string): number {
  const ids = nodes.map((node) => node.id);
  if (ids.includes(id)) return ids.indexOf(id);
  const close = nearestName(id, ids);
  throw new SandboxError("invalid_argument", `Invalid ${option} "${id}": the blueprint ${name} has no such node`, {
    hint: close === undefined ? `its nodes: ${ids.join(", ")}` : `did you mean ${close}?`,
  });
}

/** The nodes from one to another, both included; from the first and to the last by default. */
export function nodesBetween(
  blueprint: Blueprint,
  first: string | undefined,
  last: string | undefined,
  option = "from",
): readonly BlueprintNode[] {
  const { nodes } = blueprint;
  const start = first === undefined ? 0 : indexOfNode(blueprint, first, option);
  const end = last === undefined ? nodes.length : indexOfNode(blueprint, last, "until") + 1;
  if (start < end) return nodes.slice(start, end);
  throw new SandboxError("invalid_argument", `Invalid until "${last}": it comes before "${first}", the first to run`, {
    hint: `their order: ${nodes.map(({ id }) => id).join(", ")}`,
  });
}
