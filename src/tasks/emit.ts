import { isoTime } from "../util/iso-time.js";
import { redact, truncate } from "../util/sanitize.js";
import type { TaskEvent } from "./types.js";

const MAX_MESSAGE_BYTES = 4_000;

/** Reports an event. Secrets in the values of `env` are redacted. */
export type EmitTaskEvent = (
  type: TaskEvent["type"],
  message: string,
  about?: Pick<TaskEvent, "taskId" | "container" | "image" | "progress">,
  env?: Readonly<Record<string, string>>,
) => void;

/** Creates the function that reports the events of a batch: redacted, truncated, and safe from a listener that throws. */
export function createTaskEmit(batchId: string, listener: ((event: TaskEvent) => void) | undefined): EmitTaskEvent {
  return (type, message, about = {}, env = {}) => {
    if (listener === undefined) return;
    const text = truncate(redact(message, { env, secrets: [] }), MAX_MESSAGE_BYTES);
    try {
      listener({ type, message: text, batchId, ...about, time: isoTime() });
    } catch {
      // A failing listener must not change what it listens to.
    }
  };
}
