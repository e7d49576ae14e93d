import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { licencesOf } from "./third-party.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { name, exports, dependencies, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const packages = [name, ...Object.keys(dependencies), ...Object.keys(peerDependencies)];
const isOfPackage = (id) => packages.some((each) => id === each || id.startsWith(`${each}/`));
/** What is bundled has what it imports bundled as well: a package that is optional for our users may not be there. */
const external = (id, importer = "") =>
  id.startsWith("node:") || (isOfPackage(id) && !/[\\/]node_modules[\\/]/.test(importer));

/**
 * Bundles the sources in `from` into few files: Node takes longer to load hundreds of small ones than to run them. The
 * modules of `entries` keep their paths below `to`, shared code goes into the folder `parts`, and lazy imports stay lazy.
 * A door that re-exports a whole room loads only what is used of it: no module of ours is imported for its effect alone.
 */
export async function bundle(from, to, entries, groupsOf = () => []) {
  const build = await startBundle(from, entries, { external, treeshake: { moduleSideEffects: false } });
  const output = {
    dir: to,
    chunkFileNames: "parts/[name].js",
    sourcemap: true,
    sourcemapExcludeSources: true,
    comments: { jsdoc: false },
  };
  const chunks = (await build.generate(output)).output.filter(({ type }) => type === "chunk");
  await build.write({ ...output, codeSplitting: { groups: [THIRD_PARTY, ...groupsOf(chunks)] } });
  leaveUnmapped(join(to, "parts", `${THIRD_PARTY.name}.js`));
  const licences = licencesOf(chunks.flatMap(({ moduleIds }) => moduleIds));
  if (licences !== "") writeFileSync(join(to, "third-party-licences.txt"), licences);
}

/** What other packages have written is a file of its own: its sources are not shipped, so it has no map. */
const THIRD_PARTY = { name: "third-party", test: /[\\/]node_modules[\\/]/, priority: 99 };

function leaveUnmapped(file) {
  if (!existsSync(file)) return;
  rmSync(`${file}.map`, { force: true });
  writeFileSync(file, readFileSync(file, "utf8").replace(/\n\/\/# sourceMappingURL=.*\n?$/, "\n"));
}

/** The modules of `src` that package.json exports with types. */
export const typedEntries = Object.values(exports).flatMap(
  ({ types }) => /^\.\/dist\/src\/(.+)\.d\.ts$/.exec(types)?.[1] ?? [],
);

/**
 * Declares the globals that our types use, so that they compile without the types of Node or the DOM: an existing interface
 * stays the same, a missing one is empty. Files that import from Node reference its types.
 */
function surroundings({ imports }) {
  const node = imports.some((id) => id.startsWith("node:")) ? '/// <reference types="node" />\n' : "";
  const web = "interface Request {}\n  interface Response {}";
  const streams = "interface ReadableStream<R = any> {}\n  interface WritableStream<W = any> {}";
  return `${node}/// <reference lib="esnext.disposable" />\ndeclare global {\n  interface AbortSignal {}\n  ${web}\n  ${streams}\n}`;
}

/** Bundles the declarations of each entry point into one file below `to`, and the shared ones into another. */
export async function bundleTypes(to) {
  const build = await startTypes(typedEntries);
  await build.write({
    dir: to,
    chunkFileNames: "[name].js",
    codeSplitting: { groups: [{ name: "shared.d", minShareCount: 2 }] },
    minifyInternalExports: false,
    postBanner: surroundings,
  });
}

/** Starts a bundle of declarations. Thanks to `isolatedDeclarations` this needs no compiler. */
export async function startTypes(entries) {
  const plugins = [dts({ oxc: true, emitDtsOnly: true, sourcemap: true, tsconfig: false })];
  return await startBundle("src", entries, { external, plugins, treeshake: { moduleSideEffects: false } });
}

/** Starts a bundle of these modules below `from`; any warning of the bundler is an error. `options` go to the bundler. */
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
