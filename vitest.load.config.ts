import { defineConfig, type ViteUserConfig } from "vitest/config";

/** `npm run test:load`: deadlines on a machine that is busy with other work. Runs alone, one file after the other. */
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["tests/load/*.load.ts"],
    globalSetup: ["tests/support/run/setup.ts"],
    fileParallelism: false,
    testTimeout: 240_000,
    // What a test waits for comes late on a busy machine.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 240_000,
    globals: true,
  },
});

export default config;
