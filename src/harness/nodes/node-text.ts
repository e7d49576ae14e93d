import type { Text } from "../node-types.js";
import type { FieldPath } from "../schema.js";

/** A text of a node that is a template, a condition or a script. */
export interface NodeText {
  readonly place: FieldPath;
  readonly text: string;
  readonly as: "template" | "condition" | "script";
  /** The group of names that only this text has. */
  readonly group?: string;
}

/** A text in a node; functions are left out. */
export function textAt(place: FieldPath, text: unknown, as: NodeText["as"] = "template"): NodeText[] {
  return typeof text === "string" ? [{ place, text, as }] : [];
}

/** The templates in a list or in a record. */
export function textsIn(place: FieldPath, texts: readonly Text[] | Readonly<Record<string, Text>> = []): NodeText[] {
  return Object.entries(texts).flatMap(([key, text]) =>
    textAt([...place, Array.isArray(texts) ? Number(key) : key], text),
  );
}
