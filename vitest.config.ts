import { defineConfig, type ViteUserConfig } from "vitest/config";
import { LONG, LongestFirst } from "./tests/support/longest-first.js";

const long = LONG.map((name) => `tests/${name}.test.ts`);
const config: ViteUserConfig = defineConfig({
  test: {
    projects: [
      // A process to start takes longer than most files do. Where much is started a small one of its own is cheaper.
      { extends: true, test: { name: "short", include: ["tests/**/*.test.ts"], exclude: long, isolate: false } },
      { extends: true, test: { name: "long", include: long } },
    ],
    globalSetup: ["tests/support/run-setup.ts"],
    sequence: { sequencer: LongestFirst },
    // Twice the cores of a small machine: tests wait for engines and deadlines, too.
    maxWorkers: 4,
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
