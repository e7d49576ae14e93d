import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startBundle } from "./bundle.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Makes JavaScript of all tests and of the sources that they test, in `dist/tests`: a process that loads them one by one,
 * each transformed on its way, is busy for longer than with most tests. The sources are one file, so that no test
 * has a second copy of them.
 */
export async function bundleTests() {
  const tests = readdirSync(join(root, "tests"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  const entries = [...tests, "support/run/setup.ts"].map((name) => name.slice(0, -".ts".length));
  const build = await startBundle("tests", entries, {
    external: (id) => !/^[./]|^@oxc-project\//.test(id),
    plugins: [{ name: "places", transform: keepPlaces }],
    experimental: { nativeMagicString: true },
    // With one file for all sources nothing of them is loaded lazily.
    checks: { ineffectiveDynamicImport: false },
  });
  const groups = [{ name: "sources", test: /\/(src|contracts)\// }];
  const dir = join(root, "dist", "tests");
  await build.write({ dir, chunkFileNames: "parts/[name].js", codeSplitting: { groups }, sourcemap: true });
}

/** Files that look for others beside themselves find them where they were written. */
function keepPlaces(code, id, { magicString }) {
  if (!code.includes("import.meta.")) return null;
  magicString.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href));
  return { code: magicString.replaceAll("import.meta.dirname", JSON.stringify(dirname(id))) };
}
