import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type ViteUserConfig } from "vitest/config";

const packages =
  process.env["GLOVEBOX_ADAPTER_PACKAGES"] ?? fileURLToPath(new URL("tests/adapters/packages", import.meta.url));
const manifest = join(packages, "package.json");
const { dependencies } = JSON.parse(readFileSync(manifest, "utf8")) as { dependencies: Record<string, string> };
const isFramework = (id: string): boolean =>
  Object.keys(dependencies).some((name) => id === name || id.startsWith(`${name}/`));

/** `npm run test:adapters`: each adapter with its real framework, from a folder of its own. The tests and the sources find it there. */
const config: ViteUserConfig = defineConfig({
  plugins: [
    {
      name: "frameworks",
      enforce: "pre",
      async resolveId(id, _importer, options) {
        return isFramework(id) ? await this.resolve(id, manifest, { ...options, skipSelf: true }) : undefined;
      },
    },
  ],
  test: {
    include: ["tests/adapters/*.adapter.ts"],
    globalSetup: ["tests/support/run/setup.ts"],
    maxWorkers: 2,
    testTimeout: 120_000,
    // What a test waits for comes late on a busy machine.
    expect: { poll: { timeout: 30_000 } },
    hookTimeout: 240_000,
    globals: true,
  },
});

export default config;
