import type { SandboxOptions } from "../../sandbox/types.js";
import type { RedactOptions } from "../../util/redact.js";
import type { GitHubHost } from "../github.js";
import type { RunDirectory, RunPlan } from "../store.js";
import type { AgentDriver, Blueprint, NodeReport, Reporter } from "../types.js";

/** Where a run goes on that was begun before. */
export interface ResumePoint {
  /** Node to begin with. Absent: all nodes are done, and only the end of the run is missing. */
  readonly startAt?: string;
  /** What the nodes before it did. */
  readonly results: Readonly<Record<string, NodeReport>>;
  /** The files to begin with. Absent: those of the base, or of the kept sandbox. */
  readonly snapshotId?: string;
  /** The same files as a patch of the base, where the snapshot is gone with its sandbox. */
  readonly patch?: string;
  /** A kept sandbox to go on in. */
  readonly sandboxId?: string;
}

/** Everything that one session of a run needs: a run is begun in one and may go on in others. */
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
  /** What is shown nowhere. */
  readonly hidden: RedactOptions;
  readonly signal?: AbortSignal;
  /** When the run was called, by `performance.now()`; its wall counts from there. Default: now. */
  readonly startedAt?: number;
  readonly resume?: ResumePoint;
}
