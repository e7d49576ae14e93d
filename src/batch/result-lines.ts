import { createReadStream } from "node:fs";
import type { BatchResult } from "./types.js";

const LINE_END = 0x0a;

/** The line of a result. Whatever a reader takes for the end of a line, there is none within it. */
export function encodeResult(result: object): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(result).replaceAll(/[\u0085\u2028\u2029]/g, escaped)}\n`;
}

/** The results in a file, up to the end of those that are acknowledged: later ones may not even be whole. */
export async function* resultLines(path: string, end: number): AsyncGenerator<BatchResult, void, undefined> {
  if (end === 0) return;
  let parts: Buffer[] = [];
  // The reader of lines of newer versions of Node cuts at U+2028, too.
  for await (const chunk of createReadStream(path, { end: end - 1 }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_END); at !== -1; at = chunk.indexOf(LINE_END, from)) {
      yield JSON.parse(Buffer.concat([...parts, chunk.subarray(from, at)]).toString("utf8")) as BatchResult;
      parts = [];
      from = at + 1;
    }
    parts.push(chunk.subarray(from));
  }
}
