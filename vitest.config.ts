import { defineConfig, type ViteUserConfig } from "vitest/config";
import { LongestFirst } from "./tests/support/longest-first.js";
import { PURE_FILES } from "./tests/support/pure-files.js";

const config: ViteUserConfig = defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: "real",
          include: ["tests/**/*.test.ts"],
          exclude: [...PURE_FILES],
          globalSetup: ["tests/support/docker-setup.ts"],
        },
      },
      { extends: true, test: { name: "pure", include: [...PURE_FILES], isolate: false } },
    ],
    sequence: { sequencer: LongestFirst },
    // One more than there are cores on a small machine: tests wait for engines and deadlines, too.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
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

export default config;
