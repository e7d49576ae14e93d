/** One installation, decided before the sandbox is opened. Plain data without secrets: it is in the plan of a run. */
export interface InstallStep {
  /** Its id in the report. */
  readonly id: string;
  /** The file that it was found from. Absent: the blueprint names its own step. */
  readonly lockfile?: string;
  readonly run: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** What it may reach beside the network of the run, as entries of `network.allow`, and only while it runs. */
  readonly reach: readonly string[];
  /** Whether the user has a token for a registry, which stays outside. */
  readonly hasSecret: boolean;
  /** The directory that it fills, if that is in the repository. */
  readonly fills?: string;
}

/** What a run installs, and what it leaves out and why. */
export interface InstallPlan {
  readonly steps: readonly InstallStep[];
  readonly notes: readonly string[];
}
