import { defineConfig, type ViteUserConfig } from "vitest/config";
import { filesWithOwnProcess } from "./tests/support/run/durations.js";
import { LongestFirst } from "./tests/support/run/longest-first.js";

/** `npm test` runs what scripts/bundle-tests.mjs made, everything else the sources. */
const isBundled = process.env["GLOVEBOX_BUNDLED_TESTS"] === "1";
const [folder, kind] = isBundled ? ["dist/tests", "js"] : ["tests", "ts"];
const apart = filesWithOwnProcess().map((file) => (isBundled ? `dist/${file.replace(/ts$/, "js")}` : file));
const config: ViteUserConfig = defineConfig({
  test: {
    projects: [
      // Half a second goes by before the first test of a new process: more than most files take.
      {
        extends: true,
        test: {
          name: "shared",
          include: [`${folder}/**/*.test.${kind}`],
          exclude: [...apart, "**/node_modules/**"],
          isolate: false,
        },
      },
      { extends: true, test: { name: "apart", include: apart } },
    ],
    // They are plain JavaScript already.
    server: { deps: { external: [/\/dist\/tests\/parts\//] } },
    globalSetup: [`${folder}/support/run/setup.${kind}`],
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

export default config;
