import type { FieldPath } from "../schema.js";

/** A document that was read, and where each part of it stands. */
export interface ParsedDocument {
  readonly value: unknown;
  /** What is wrong with the notation itself. */
  readonly errors: readonly { line: number; column: number; message: string }[];
  /** Line and column, both from 1, of a part; of its nearest parent when it is not there. */
  locate(place: FieldPath, isKey?: boolean): { line: number; column: number };
}

/** Reads YAML or JSON. JSON is YAML too, so one reader gives lines for both. */
export async function parseDocument(text: string): Promise<ParsedDocument> {
  const { parseDocument: parse, LineCounter, isMap, isScalar, isNode } = await import("yaml");
  const lines = new LineCounter();
  const document = parse(text, { lineCounter: lines, version: "1.2", uniqueKeys: true, strict: true });
  const at = (offset: number): { line: number; column: number } => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const errors = document.errors.map(({ pos, message }) => ({ ...at(pos[0]), message: firstLine(message) }));
  let value: unknown;
  if (errors.length === 0) {
    try {
      value = document.toJS({ maxAliasCount: 100 });
    } catch (error) {
      errors.push({ ...at(0), message: firstLine((error as Error).message) });
    }
  }
  const offsetOf = (place: FieldPath, isKey: boolean): number | undefined => {
    const parent = document.getIn(place.slice(0, -1), true);
    const last = place.at(-1);
    if (isKey && isMap(parent)) {
      const pair = parent.items.find(({ key }) => isScalar(key) && key.value === last);
      if (pair !== undefined && isScalar(pair.key)) return pair.key.range?.[0];
    }
    const node = place.length === 0 ? document.contents : document.getIn(place, true);
    return isNode(node) ? node.range?.[0] : undefined;
  };
  return {
    value,
    errors,
    locate(place, isKey = false) {
      for (let length = place.length; length >= 0; length -= 1) {
        const offset = offsetOf(place.slice(0, length), isKey && length === place.length);
        if (offset !== undefined) return at(offset);
      }
      return at(0);
    },
  };
}

function firstLine(message: string): string {
  return (message.split("\n")[0] ?? message).replace(/ at line \d+, column \d+:?$/, "");
}
