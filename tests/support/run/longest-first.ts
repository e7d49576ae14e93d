import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { longestFirst, readDurations, root } from "./durations.js";

/** Starts with the files that take longest: started last, one of them would be waited for alone. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durations = readDurations();
    const nameOf = ({ moduleId }: TestSpecification): string =>
      relative(root, moduleId)
        .replace(/^dist\//, "")
        .replace(/\.js$/, ".ts");
    return longestFirst(await super.sort(files), (file) => durations[nameOf(file)]);
  }
}
