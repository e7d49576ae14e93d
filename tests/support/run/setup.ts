import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeEngine, stopEngine } from "../../../scripts/docker-engine.mjs";
import { prepareForAll } from "./prepare-for-all.js";

/**
 * Gives all tests of a run one place for what they share: a Docker engine, the compiled sources, the installed package. When
 * all files are run they are made here, outside any test's time limit; with a single file the first test that needs one makes
 * it. All are gone at the end. Each of vitest's projects calls it; the first call counts.
 */
export async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env["GLOVEBOX_TEST_RUN"] === String(process.pid)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "glovebox-engine-"));
  process.env["GLOVEBOX_TEST_PLACE"] = folder;
  process.env["GLOVEBOX_TEST_RUN"] = String(process.pid);
  if (process.env["GLOVEBOX_TEST_ALL"] === "1") await prepareForAll();
  return async () => {
    const engine = join(folder, "engine");
    if (existsSync(join(engine, "keeper.pid"))) await stopEngine(describeEngine(engine));
    rmSync(folder, { recursive: true, force: true });
  };
}
