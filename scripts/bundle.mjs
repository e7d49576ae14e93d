import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { name, dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const packages = [name, ...Object.keys(dependencies), ...Object.keys(peerDependencies)];
const external = (id) => id.startsWith("node:") || packages.some((each) => id === each || id.startsWith(`${each}/`));

/**
 * Makes JavaScript of the sources in `from`, in few files: Node takes longer to load hundreds of small ones than to run
 * them. The modules of `entries` keep their places below `to`, what several of them need is in its folder `parts`, and what
 * is imported lazily stays lazy.
 */
export async function bundle(from, to, entries) {
  const build = await startBundle(from, entries, { external });
  await build.write({ dir: to, chunkFileNames: "parts/[name].js" });
}

/** Starts a bundle of the declarations of these modules of `src`. Each declaration follows from its own file (`isolatedDeclarations`). */
export async function startTypes(entries) {
  const plugins = [dts({ oxc: true, emitDtsOnly: true, sourcemap: true, tsconfig: false })];
  return await startBundle("src", entries, { external, plugins });
}

/** Begins a bundle of these modules below `from`; what the bundler has to say about it is an error. `options` are more of its own. */
export async function startBundle(from, entries, options) {
  return await rolldown({
    input: Object.fromEntries(entries.map((entry) => [entry, join(root, from, `${entry}.ts`)])),
    cwd: root,
    platform: "node",
    transform: { target: "es2022" },
    onLog: (_, { message }) => {
      throw new Error(message);
    },
    ...options,
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [from, to, ...entries] = process.argv.slice(2);
  await bundle(from, to, entries);
}
