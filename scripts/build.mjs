import { chmodSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildAgent } from "./build-agent.mjs";
import { run } from "./processes.mjs";
import { expectSuccess, step } from "./step.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Compiles the TypeScript into `dist/`, from nothing, so that no file of an older build is shipped. */
export async function buildLibrary() {
  rmSync(join(root, "dist"), { recursive: true, force: true });
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const result = await run(process.execPath, [tsc, "-p", "tsconfig.build.json"], { cwd: root, quiet: true });
  expectSuccess(result, "tsc");
  chmodSync(join(root, "dist", "src", "cli.js"), 0o755);
}

/** Builds all there is to build. */
export async function build() {
  const isBeside = true;
  const parts = [step("agent", buildAgent, { isBeside }), step("library", buildLibrary, { isBeside })];
  const failed = (await Promise.allSettled(parts)).find(({ status }) => status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await build().catch(() => process.exit(1));
