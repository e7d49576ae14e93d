import { redact, truncate } from "../util/sanitize.js";
import type { TaskEvent } from "./types.js";

const MAX_MESSAGE_BYTES = 4_000;

/** Tells whoever listens that something happened. `env` holds secrets to hide. */
export type EmitTaskEvent = (
  type: TaskEvent["type"],
  message: string,
  about?: Pick<TaskEvent, "taskId" | "container" | "image" | "progress">,
  env?: Readonly<Record<string, string>>,
) => void;

/** Makes the function that reports the events of a batch: redacted, short, and safe from a listener that throws. */
export function createTaskEmit(batchId: string, listener: ((event: TaskEvent) => void) | undefined): EmitTaskEvent {
  return (type, message, about = {}, env = {}) => {
    if (listener === undefined) return;
    const text = truncate(redact(message, { env, secrets: [] }), MAX_MESSAGE_BYTES);
    try {
      listener({ type, message: text, batchId, ...about, time: new Date().toISOString() });
    } catch {
      // A listener only watches: its failure must not change what it watches.
    }
  };
}
