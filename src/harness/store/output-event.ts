import type { NodeOutput, RunEventBody } from "../types.js";

/** The event for what a node printed. */
export function toOutputEvent({ bytes, ...ids }: NodeOutput): Extract<RunEventBody, { type: "node.output" }> {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  return { type: "node.output", ...ids, text };
}
