import { readFile, stat } from "node:fs/promises";
import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../sandbox/types.js";
import { defined } from "../../util/defined.js";
import { hideable, type RedactOptions } from "../../util/redact.js";
import { type GitHubHost, gitHubHost } from "../github.js";
import type { RunDirectory, RunPlan } from "../store.js";
import type { AgentDriver, Blueprint, HarnessOptions, NodeReport, Reporter } from "../types.js";

const MAX_SPEC_BYTES = 1024 * 1024;

/** Where a run is resumed that was started before. */
export interface ResumePoint {
  /** Node to start with. Absent: all nodes are done, and only the end of the run is missing. */
  readonly startAt?: string;
  /** What the nodes before it did. */
  readonly results: Readonly<Record<string, NodeReport>>;
  /** The files to start with. Absent: those of the base, or of the kept sandbox. */
  readonly snapshotId?: string;
  /** The same files as a patch of the base, where the snapshot is gone with its sandbox. */
  readonly patch?: string;
  /** A kept sandbox to continue in. */
  readonly sandboxId?: string;
}

/** Everything that one session of a run needs: a run is started in one and may be resumed in others. */
export interface SessionOptions {
  readonly plan: RunPlan;
  readonly directory: RunDirectory;
  readonly blueprint: Blueprint;
  readonly host: GitHubHost;
  readonly reporters: readonly Reporter[];
  /** What the user should know before it starts. */
  readonly warnings: readonly string[];
  readonly spec?: string;
  /** How its sandbox is opened, with what is not written down. */
  readonly sandboxOptions: SandboxOptions;
  /** Values by name, of the secrets that nodes declare and no others. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly agents?: Readonly<Record<string, AgentDriver>>;
  readonly githubToken: string | undefined;
  /** Values that must not be shown anywhere. */
  readonly hidden: RedactOptions;
  readonly signal?: AbortSignal;
  /** When the run was called, by `performance.now()`; its wall counts from there. Default: now. */
  readonly startedAt?: number;
  readonly resume?: ResumePoint;
}

/** What a run decides by itself; the rest of a session is as its caller says. */
type Decided = Omit<SessionOptions, "host" | "reporters" | "agents" | "githubToken" | "hidden" | "signal">;

/** Everything that a session needs, of what was decided and what its caller gives. */
export function toSessionOptions(
  {
    reporter = [],
    agents,
    githubToken,
    signal,
  }: Pick<HarnessOptions, "reporter" | "agents" | "githubToken" | "signal">,
  decided: Decided,
): SessionOptions {
  const { secrets, sandboxOptions } = decided;
  const outside = outsideOf(sandboxOptions);
  const inside = Object.entries(secrets).filter(([name]) => !outside.includes(name));
  return {
    ...decided,
    // Of the others, the sandbox has a placeholder.
    secrets: Object.fromEntries(inside),
    host: gitHubHost(process.env),
    reporters: [reporter].flat(),
    githubToken,
    hidden: { env: secrets, secrets: hideable([...Object.values(secrets), ...(githubToken ? [githubToken] : [])]) },
    ...defined({ agents, signal }),
  };
}

/** The variables whose values stay outside: those that have a rule, and the other half of keys that sign. */
function outsideOf({ secrets: rules = {} }: SandboxOptions): string[] {
  const isSigning = Object.values(rules).some(({ sign }) => sign === "aws");
  return [...Object.keys(rules), ...(isSigning ? ["AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"] : [])];
}

/** The text of the file that says in detail what is wanted. */
export async function readSpec(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) {
    throw new SandboxError("not_found", `Invalid spec "${path}" — no such file`, { hint: "name a file of text" });
  }
  if (found.size > MAX_SPEC_BYTES) {
    throw new SandboxError("limit_exceeded", `Invalid spec "${path}" — more than ${MAX_SPEC_BYTES} bytes`);
  }
  return await readFile(path, "utf8");
}
