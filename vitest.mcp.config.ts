import { defineConfig, type ViteUserConfig } from "vitest/config";

/** `npm run test:mcp`: the official tests of the protocol. One file after the other: each takes a core. */
const config: ViteUserConfig = defineConfig({
  test: {
    include: ["tests/mcp/*.mcp.ts"],
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
