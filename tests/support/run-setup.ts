import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeEngine, stopEngine } from "../../scripts/docker-engine.mjs";

/**
 * Gives all tests of a run one place for what they share: a Docker engine and the compiled sources, which the first that
 * needs them starts or makes. Both are gone at the end. Each of vitest's projects calls it; the first call counts.
 */
export function setup(): (() => Promise<void>) | undefined {
  if (process.env["GLOVEBOX_TEST_RUN"] === String(process.pid)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "glovebox-engine-"));
  process.env["GLOVEBOX_TEST_PLACE"] = folder;
  process.env["GLOVEBOX_TEST_RUN"] = String(process.pid);
  return async () => {
    const engine = join(folder, "engine");
    if (existsSync(join(engine, "keeper.pid"))) await stopEngine(describeEngine(engine));
    rmSync(folder, { recursive: true, force: true });
  };
}
