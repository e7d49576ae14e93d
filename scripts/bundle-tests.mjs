import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startBundle } from "./bundle.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Bundles all tests and sources into `dist/tests`: loading and transforming them one by one takes a process longer than
 * most tests. All sources go into one file, so that no test has a second copy of them.
 */
export async function bundleTests() {
  const tests = readdirSync(join(root, "tests"), { recursive: true })
    // Packages may come with tests of their own.
    .filter((name) => name.endsWith(".test.ts") && !name.includes("node_modules"));
  const entries = [...tests, "support/run/setup.ts"].map((name) => name.slice(0, -".ts".length));
  const build = await startBundle("tests", entries, {
    external: (id) => !/^[./]|^@oxc-project\//.test(id),
    plugins: [{ name: "places", transform: keepPlaces }],
    experimental: { nativeMagicString: true },
    // With one file for all sources nothing is loaded lazily.
    checks: { ineffectiveDynamicImport: false },
  });
  const groups = [{ name: "sources", test: /\/(src|contracts)\// }];
  const dir = join(root, "dist", "tests");
  await build.write({ dir, chunkFileNames: "parts/[name].js", codeSplitting: { groups }, sourcemap: true });
}

/** Lets files that look for others next to them find the original ones. */
function keepPlaces(code, id, { magicString }) {
  if (!code.includes("import.meta.")) return null;
  magicString.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href));
  return { code: magicString.replaceAll("import.meta.dirname", JSON.stringify(dirname(id))) };
}
