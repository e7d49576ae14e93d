import { type Fault, findFaults } from "../schema.js";
import type { Blueprint, BlueprintSpec } from "../types.js";
import { blueprintError, toBlueprintFault } from "./blueprint-error.js";
import { normalizeBlueprint } from "./normalize.js";
import { blueprintSchema } from "./schema.js";
import { toDocument } from "./to-document.js";

/** What `defineBlueprint` made, so that it is not checked twice. */
const checked = new WeakSet<Blueprint>();

/** Whether a value is a checked blueprint. */
export function isBlueprint(value: unknown): value is Blueprint {
  return typeof value === "object" && value !== null && checked.has(value as Blueprint);
}

/** A checked blueprint that knows its file. */
export function withSource(blueprint: Blueprint, source: string): Blueprint {
  const known = { ...blueprint, source };
  checked.add(known);
  return known;
}

/** Checks a blueprint as it is written and makes one that can be run; all that is wrong is in one error. */
export function defineBlueprint(spec: BlueprintSpec): Blueprint {
  const { blueprint, faults } = checkBlueprint(spec, toDocument(spec));
  if (blueprint === undefined) throw blueprintError(faults.map(toBlueprintFault));
  return blueprint;
}

/** Another name of `defineBlueprint`. */
export function blueprint(spec: BlueprintSpec): Blueprint {
  return defineBlueprint(spec);
}

/** Checks the shape and then the meaning; there is a blueprint when there are no faults. */
export function checkBlueprint(
  spec: BlueprintSpec,
  document: unknown,
): { blueprint?: Blueprint; faults: readonly Fault[] } {
  const faults: Fault[] = findFaults(document, blueprintSchema);
  if (faults.length > 0) return { faults };
  const blueprint = normalizeBlueprint(spec, (fault) => faults.push(fault));
  if (faults.length > 0) return { faults };
  checked.add(blueprint);
  return { blueprint, faults };
}
