import { defineConfig, type ViteUserConfig } from "vitest/config";
import { LongestFirst } from "./tests/support/longest-first.js";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    globalSetup: ["tests/support/docker-setup.ts"],
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
