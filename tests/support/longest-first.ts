import { basename } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take half a minute and more: begun last, one of them would be waited for alone. */
const LONG = [
  ...[
    "failpoints",
    "conformance-docker",
    "git-vectors",
    "examples",
    "conformance-docker-busybox",
    "conformance-vercel",
  ],
  ...[
    "task-services",
    "conformance-local",
    "conformance-local-unconfined",
    "conformance-daytona",
    "conformance-dagger",
  ],
  ...["kit", "task-clone", "vercel-faults", "reap", "harness-push", "task-faults", "git-push", "sandbox-vercel"],
];

/** Begins with the files that take longest, and goes on as vitest does. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const names = new Map(files.map((file) => [file, basename(file.moduleId, ".test.ts")]));
    const isLong = (file: TestSpecification): boolean => LONG.includes(names.get(file) ?? "");
    const rest = await super.sort(files.filter((file) => !isLong(file)));
    const long = LONG.flatMap((name) => files.filter((file) => names.get(file) === name));
    return [...long, ...rest];
  }
}
