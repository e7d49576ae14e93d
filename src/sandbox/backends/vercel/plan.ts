import { randomBytes } from "node:crypto";
import type { KeptOptions } from "../../kept-options.js";
import { DEFAULT_OPERATION_TIMEOUT, type SandboxOptions } from "../../types.js";
import type { VercelClient } from "./client.js";
import type { Origin } from "./repository.js";
import type { VercelSettings } from "./settings.js";

/** One sandbox in the making: who it is and how its machines are made. */
export interface Plan {
  readonly id: string;
  readonly client: VercelClient;
  readonly settings: VercelSettings;
  readonly opts: SandboxOptions;
  readonly keep: boolean;
  /** How long one of its calls may wait where the service asks for it, in milliseconds. */
  readonly patience: number;
  /** What its files started from, where that is a repository. */
  origin: Origin | undefined;
  /** Aborts the creation, and nothing after it. */
  signal: AbortSignal | undefined;
  /** Set once there is a driver to tell. */
  warn(message: string): void;
}

/** What a kept sandbox remembers of how it was made. Never a secret. */
export interface Reopen {
  readonly name: string;
  readonly teamId: string;
  readonly projectId: string;
  readonly settings: VercelSettings;
  readonly origin?: Origin;
  /** Absent in a record of an older version. */
  readonly options?: KeptOptions;
}

/** Plans a sandbox. */
export function planOf(
  id: string,
  client: VercelClient,
  settings: VercelSettings,
  opts: SandboxOptions,
  keep: boolean,
): Plan {
  const patience = opts.operationTimeout ?? DEFAULT_OPERATION_TIMEOUT;
  return {
    ...{ id, client, settings, opts, keep, patience },
    origin: undefined,
    signal: opts.signal,
    warn: () => undefined,
  };
}

/** An id that no other sandbox or snapshot has. */
export function newId(): string {
  return `vercel-${randomBytes(8).toString("hex")}`;
}
