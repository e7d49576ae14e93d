import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take long, the longest first: begun last, one of them would be waited for alone. */
export const LONG: readonly string[] = [
  ...["git-vectors", "failpoints", "examples", "conformance-local", "conformance-docker"],
  ...["conformance-daytona", "conformance-docker-busybox", "conformance-vercel", "conformance-local-unconfined"],
  ...["conformance-dagger"],
  ...["faulty-disk", "harness-run", "task-services", "power-loss", "kit", "package", "task-faults", "git-push"],
  ...["reap", "repo-url", "dagger-graph", "sandbox-vercel"],
  ...["snapshot", "mirror", "cli-kept", "vercel-faults", "vercel-waits", "vercel-kept", "cli-doctor"],
  ...["dagger-backend", "mutants", "cli-completion"],
  ...["harness-daytona", "cli-signals", "docker-faults", "worktree", "confinement-crash", "faults", "harness-local"],
  ...["harness-cli", "git-restore", "task-clone", "cli-terminal", "confinement-mounts", "vercel-example"],
  ...["confinement-files", "harness-docker", "confinement-process", "cli-blueprint", "engine-agents", "daytona-reap"],
];

/** Begins with the files that take longest, and goes on as vitest does. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const names = new Map(files.map((file) => [file, basename(file.moduleId).replace(/\.test\.[jt]s$/, "")]));
    const long = LONG.flatMap((name) => files.filter((file) => names.get(file) === name));
    const rest = await super.sort(files.filter((file) => !long.includes(file)));
    return [...long, ...rest];
  }
}
