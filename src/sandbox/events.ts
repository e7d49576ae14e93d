import type { SandboxEvent } from "../../contracts/types.js";
import { redact, truncate } from "../util/sanitize.js";
import type { SandboxError } from "./errors.js";
import type { Driver } from "./types.js";

/** Tells the listener of a sandbox that something happened. `env` holds further secrets to hide. */
export type Emit = (type: SandboxEvent["type"], message: string, env?: Readonly<Record<string, string>>) => void;

const MAX_MESSAGE_BYTES = 2_000;

/** What must not be seen in events and errors. */
export interface Secrets {
  env: Readonly<Record<string, string>>;
  secrets: readonly string[];
}

/** Makes the function that reports events: redacted, short, and safe from a listener that throws. */
export function createEmit(driver: Driver, hidden: Secrets, listener: (event: SandboxEvent) => void): Emit {
  return (type, message, env) => {
    const known = env === undefined ? hidden : { ...hidden, env: { ...hidden.env, ...env } };
    const event: SandboxEvent = {
      type,
      sandboxId: driver.id,
      backend: driver.backend,
      message: truncate(redact(message, known), MAX_MESSAGE_BYTES),
      time: new Date().toISOString(),
    };
    try {
      listener(event);
    } catch {
      // A listener only watches: its failure must not change what it watches.
    }
  };
}

/** Takes secrets out of what an error shows. */
export function redactError(error: SandboxError, hidden: Secrets): SandboxError {
  const message = redact(error.message, hidden);
  if (message !== error.message) {
    error.message = message;
    if (error.stack !== undefined) error.stack = redact(error.stack, hidden);
  }
  return error;
}
