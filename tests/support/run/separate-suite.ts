import { defineConfig, type ViteUserConfig } from "vitest/config";

/** A suite that `npm test` does without. One file runs after the other: each of them takes a core or more. */
export function separateSuite(...include: string[]): ViteUserConfig {
  return defineConfig({
    test: {
      include,
      globalSetup: ["tests/support/run/setup.ts"],
      fileParallelism: false,
      // What concurrent tests take is mostly waiting.
      maxConcurrency: 5,
      testTimeout: 240_000,
      // What a test waits for comes late on a busy machine.
      expect: { poll: { timeout: 30_000 } },
      hookTimeout: 240_000,
      globals: true,
    },
  });
}
