import { textsOf } from "../nodes.js";
import { parseTemplate } from "../template.js";
import type { Blueprint } from "../types.js";

/** The first node that runs in any case and cannot do without a spec; undefined when there is none. */
export function nodeThatNeedsSpec({ nodes }: Pick<Blueprint, "nodes">): string | undefined {
  const named = (text: string): boolean =>
    parseTemplate(text).some((part) => typeof part !== "string" && part.source === "spec");
  return nodes.find(
    (node) => node.when === undefined && textsOf(node).some(({ as, text }) => as === "template" && named(text)),
  )?.id;
}
