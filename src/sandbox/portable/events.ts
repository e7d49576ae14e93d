import type { SandboxError } from "../../../contracts/errors.js";
import type { SandboxEvent } from "../../../contracts/types.js";
import { isoTime } from "../../util/iso-time.js";
import type { Redactor } from "../../util/redact.js";
import { createRedactor, redact, truncate } from "../../util/sanitize.js";
import type { Driver } from "../types.js";

/** Reports an event to the listener of a sandbox. `env` contains further secrets to redact. */
export type Emit = (type: SandboxEvent["type"], message: string, env?: Readonly<Record<string, string>>) => void;

const MAX_MESSAGE_BYTES = 2_000;
const MAX_CAUSES = 8;

/** What must not appear in events and errors. */
export interface Secrets {
  env: Readonly<Record<string, string>>;
  secrets: readonly string[];
}

/** Makes the function that reports events: redacted, short, and safe from a listener that throws. */
export function createEmit(
  driver: Pick<Driver, "id" | "backend">,
  hidden: Secrets,
  listener: (event: SandboxEvent) => void,
): Emit {
  return (type, message, env) => {
    const known = env === undefined ? hidden : { ...hidden, env: { ...hidden.env, ...env } };
    const event: SandboxEvent = {
      type,
      sandboxId: driver.id,
      backend: driver.backend,
      message: truncate(redact(message, known), MAX_MESSAGE_BYTES),
      time: isoTime(),
    };
    try {
      listener(event);
    } catch {
      // A listener only watches: its failure must not change what it watches.
    }
  };
}

/** Redacts an error and its causes. */
export function redactError(error: SandboxError, hidden: Secrets): SandboxError {
  const redactor = createRedactor(hidden);
  let at: unknown = error;
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth++) {
    redactField(at, "message", redactor);
    // The stack has its own copy of the message.
    redactField(at, "stack", redactor);
    at = at.cause;
  }
  return error;
}

/** Redefined, not assigned: some errors of the platform only have getters. */
function redactField(error: Error, field: "message" | "stack", redactor: Redactor): void {
  const shown = error[field];
  const safe = shown === undefined ? undefined : redactor.write(shown) + redactor.end();
  if (safe !== shown) Object.defineProperty(error, field, { value: safe, configurable: true, writable: true });
}
