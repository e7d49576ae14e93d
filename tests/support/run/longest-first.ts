import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take long, the longest first: begun last, one of them would be waited for alone. */
export const LONG: readonly string[] = [
  ...[
    "sandbox/git/vectors",
    "sandbox/faults/failpoints",
    "project/examples",
    "sandbox/backends/local/conformance",
    "sandbox/backends/docker/conformance",
  ],
  ...[
    "sandbox/backends/daytona/conformance",
    "sandbox/backends/docker/conformance-busybox",
    "sandbox/backends/vercel/conformance",
    "sandbox/backends/local/conformance-unconfined",
  ],
  ...["sandbox/backends/dagger/conformance"],
  ...[
    "sandbox/faults/faulty-disk",
    "harness/run",
    "tasks/services",
    "sandbox/faults/power-loss",
    "testing/kit",
    "project/package",
    "tasks/faults",
    "sandbox/git/push",
  ],
  ...["sandbox/reap", "sandbox/git/repo-url", "sandbox/backends/dagger/graph", "sandbox/backends/vercel/sandbox"],
  ...[
    "sandbox/git/snapshot",
    "sandbox/git/mirror",
    "cli/kept",
    "sandbox/backends/vercel/faults",
    "sandbox/backends/vercel/waits",
    "sandbox/backends/vercel/kept",
    "cli/doctor",
  ],
  ...["sandbox/backends/dagger/backend", "testing/mutants", "cli/completion"],
  ...[
    "harness/daytona",
    "cli/signals",
    "sandbox/backends/docker/faults",
    "sandbox/git/worktree",
    "sandbox/backends/local/confinement-crash",
    "sandbox/faults/faults",
    "harness/local",
  ],
  ...[
    "harness/cli",
    "sandbox/git/restore",
    "tasks/clone",
    "cli/terminal",
    "sandbox/backends/local/confinement-mounts",
    "sandbox/backends/vercel/example",
  ],
  ...[
    "sandbox/backends/local/confinement-files",
    "harness/docker",
    "sandbox/backends/local/confinement-process",
    "cli/blueprint",
    "harness/engine/agents",
    "sandbox/backends/daytona/reap",
  ],
];

/** Begins with the files that take longest, and goes on as vitest does. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const nameOf = ({ moduleId }: TestSpecification): string =>
      moduleId.replace(/^.*?\/tests\//, "").replace(/\.test\.[jt]s$/, "");
    const long = LONG.flatMap((name) => files.filter((file) => nameOf(file) === name));
    const rest = await super.sort(files.filter((file) => !long.includes(file)));
    return [...long, ...rest];
  }
}
