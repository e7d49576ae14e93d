import { defineConfig, type ViteUserConfig } from "vitest/config";

/** `npm run test:agents`: the real coding agents, against a scripted model. One file after the other: an agent takes a core when it starts. */
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["tests/agents/*.agents.ts"],
    globalSetup: ["tests/support/run/setup.ts"],
    fileParallelism: false,
    // What a case of the matrix takes is mostly waiting.
    maxConcurrency: 5,
    testTimeout: 240_000,
    // What a test waits for comes late on a busy machine.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 240_000,
    globals: true,
  },
});

export default config;
