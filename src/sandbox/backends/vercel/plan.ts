import type { SandboxEntry } from "../../../../contracts/backend.js";
import { DEFAULT_OPERATION_TIMEOUT, type SandboxOptions } from "../../types.js";
import type { VercelClient } from "./client.js";
import type { Origin } from "./repository.js";
import type { VercelSettings } from "./settings.js";

/** One sandbox: its identity and how its machines are made. */
export interface VercelPlan {
  readonly entry: SandboxEntry;
  readonly client: VercelClient;
  readonly settings: VercelSettings;
  readonly opts: SandboxOptions;
  /** How long one of its calls may wait if the service asks for it, in milliseconds. */
  readonly patience: number;
  /** What its files started from, if that is a repository. */
  origin: Origin | undefined;
}

/** What is saved about a kept sandbox. Never a secret. */
export interface Reopen {
  readonly name: string;
  readonly teamId: string;
  readonly projectId: string;
  readonly settings: VercelSettings;
  readonly origin?: Origin;
}

/** Plans a sandbox. */
export function planOf(
  client: VercelClient,
  settings: VercelSettings,
  opts: SandboxOptions,
  entry: SandboxEntry,
): VercelPlan {
  const patience = opts.operationTimeout ?? DEFAULT_OPERATION_TIMEOUT;
  return { entry, client, settings, opts, patience, origin: undefined };
}
