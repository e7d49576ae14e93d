import { nearestName } from "../../util/nearest.js";
import { FUNCTIONS } from "./evaluate.js";
import type { Expression } from "./parse.js";

/** Every name that an expression looks up. */
export function namesIn(expression: Expression): (readonly string[])[] {
  switch (expression.kind) {
    case "value":
      return [];
    case "name":
      return [expression.path];
    case "not":
      return namesIn(expression.of);
    case "call":
      return expression.args.flatMap(namesIn);
    case "pair":
      return [...namesIn(expression.left), ...namesIn(expression.right)];
  }
}

/** What is wrong with the calls in an expression: functions that do not exist, or another number of arguments. */
export function faultsOfCalls(expression: Expression): string[] {
  switch (expression.kind) {
    case "value":
    case "name":
      return [];
    case "not":
      return faultsOfCalls(expression.of);
    case "pair":
      return [...faultsOfCalls(expression.left), ...faultsOfCalls(expression.right)];
    case "call":
      return [...faultsOfCall(expression.name, expression.args.length), ...expression.args.flatMap(faultsOfCalls)];
  }
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
