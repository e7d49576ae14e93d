import { nearestName } from "../../util/nearest.js";
import { FUNCTIONS } from "./evaluate.js";
import type { Expression } from "./parse.js";

/** Every name that an expression looks up. */
export function namesIn(expression: Expression): (readonly string[])[] {
  return partsOf(expression).flatMap((part) => (part.kind === "name" ? [part.path] : []));
}

/** What is wrong with the calls in an expression: functions that do not exist, or another number of arguments. */
export function faultsOfCalls(expression: Expression): string[] {
  return partsOf(expression).flatMap((part) => (part.kind === "call" ? faultsOfCall(part.name, part.args.length) : []));
}

/** An expression and all that it is made of, from left to right. */
function partsOf(expression: Expression): Expression[] {
  const { kind } = expression;
  const inner =
    kind === "not"
      ? [expression.of]
      : kind === "call"
        ? expression.args
        : kind === "pair"
          ? [expression.left, expression.right]
          : [];
  return [expression, ...inner.flatMap(partsOf)];
}

function faultsOfCall(name: string, count: number): string[] {
  const bounds = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
  if (bounds === undefined) {
    const close = nearestName(name, Object.keys(FUNCTIONS));
    const known = Object.keys(FUNCTIONS).join(", ");
    return [`there is no function ${name}${close === undefined ? `; there are ${known}` : `; did you mean ${close}?`}`];
  }
  const [least, most] = bounds;
  return count >= least && count <= most
    ? []
    : [`${name} takes ${least === most ? least : `${least} to ${most}`} arguments, not ${count}`];
}
