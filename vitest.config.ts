import { defineConfig, type ViteUserConfig } from "vitest/config";
import { LONG, LongestFirst } from "./tests/support/run/longest-first.js";

/** `npm test` runs what scripts/bundle-tests.mjs made, everything else the sources. */
const isBundled = process.env["GLOVEBOX_BUNDLED_TESTS"] === "1";
const [folder, kind] = isBundled ? ["dist/tests", "js"] : ["tests", "ts"];
const long = LONG.map((name) => `${folder}/${name}.test.${kind}`);
const config: ViteUserConfig = defineConfig({
  test: {
    projects: [
      // A process to start takes longer than most files do. Where much is started a small one of its own is cheaper.
      {
        extends: true,
        test: { name: "short", include: [`${folder}/**/*.test.${kind}`], exclude: long, isolate: false },
      },
      { extends: true, test: { name: "long", include: long } },
    ],
    // They are plain JavaScript already.
    server: { deps: { external: [/\/dist\/tests\/parts\//] } },
    globalSetup: [`${folder}/support/run/setup.${kind}`],
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
