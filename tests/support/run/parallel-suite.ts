import { defineConfig, type ViteUserConfig } from "vitest/config";
import { filesWithOwnProcess, testFiles } from "./durations.js";
import { LongestFirst } from "./longest-first.js";

/** Which test files a suite runs, and whether from what scripts/bundle-tests.mjs made or from the sources. */
export interface ParallelSuite {
  readonly isBundled: boolean;
  has(file: string): boolean;
}

/** The backends that are services, on stand-ins that speak their wire: a suite of its own. */
export function isOfService(file: string): boolean {
  return /^tests\/sandbox\/backends\/(dagger|daytona|kubernetes|vercel)\//.test(file);
}

/** A suite whose files run beside each other, the longest first. */
export function parallelSuite({ isBundled, has }: ParallelSuite): ViteUserConfig {
  const place = (file: string): string => (isBundled ? `dist/${file.replace(/ts$/, "js")}` : file);
  const apart = filesWithOwnProcess();
  const files = testFiles().filter(has);
  return defineConfig({
    test: {
      projects: [
        // Half a second goes by before the first test of a new process: more than most files take.
        {
          extends: true,
          test: {
            name: "shared",
            include: files.filter((file) => !apart.includes(file)).map(place),
            isolate: false,
          },
        },
        { extends: true, test: { name: "apart", include: files.filter((file) => apart.includes(file)).map(place) } },
      ],
      // They are plain JavaScript already.
      server: { deps: { external: [/\/dist\/tests\/parts\//] } },
      globalSetup: [place("tests/support/run/setup.ts")],
      sequence: { sequencer: LongestFirst },
      // Twice the cores of a small machine: tests wait for engines and deadlines, too.
      maxWorkers: 4,
      testTimeout: 240_000,
      // What a test waits for comes late on a busy machine.
      expect: { poll: { timeout: 30_000 } },
      hookTimeout: 240_000,
      maxConcurrency: 4,
      globals: true,
      reporters: ["default"],
      coverage: {
        provider: "v8",
        include: ["src/**/*.ts"],
        reporter: ["text", "json-summary"],
        reportOnFailure: true,
        thresholds: { lines: 85 },
      },
    },
  });
}
