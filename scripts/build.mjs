import { chmodSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildGuest } from "./build-guest.mjs";
import { step } from "./step.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Modules that are not entry points of the package, but that programs in this repository load by path. */
const OWN = [
  ...["sandbox", "sandbox/host", "machine/failpoint", "sandbox/egress/dial", "util/tar/tar-pack"],
  ...["sandbox/backends/docker/engine/endpoint", "sandbox/backends/docker/engine/engine"],
  ...["client/pod-exec", "clusters", "job-pod"].map((name) => `sandbox/backends/kubernetes/${name}`),
];

/** Builds `dist/` from scratch, so that no file of an older build is shipped. */
export async function buildLibrary() {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  const [{ bundle, bundleTypes }, { startGroups }] = await Promise.all([
    import("./bundle.mjs"),
    import("./bundle-groups.mjs"),
  ]);
  const examples = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"));
  await Promise.all([
    bundleTypes(join(root, "dist", "src")),
    bundle("src", join(root, "dist", "src"), [...entryPoints(), ...OWN], startGroups),
    bundle(
      "examples",
      join(root, "dist", "examples"),
      examples.map((name) => name.slice(0, -".ts".length)),
    ),
  ]);
  chmodSync(join(root, "dist", "src", "cli.js"), 0o755);
}

/** The modules that package.json exports. */
function entryPoints() {
  const { exports, bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const targets = [...Object.values(exports).map((target) => target.default ?? target), ...Object.values(bin)];
  return targets.flatMap((target) => /^\.\/dist\/src\/(.+)\.js$/.exec(target)?.[1] ?? []);
}

/** Builds everything: the guest at once, and the library when the `dependencies` are installed. */
export async function build(dependencies) {
  const isBeside = true;
  const library = async () => {
    await dependencies;
    await step("library", buildLibrary, { isBeside });
  };
  const parts = [step("guest", buildGuest, { isBeside }), library()];
  const failed = (await Promise.allSettled(parts)).find(({ status }) => status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await build().catch(() => process.exit(1));
