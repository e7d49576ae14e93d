import { existsSync } from "node:fs";
import { readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describeEngine, startEngine, waitForEngine, whyNoEngine } from "../../../scripts/docker-engine.mjs";
import { ensureImage, whyNoImage } from "../../../scripts/docker-images.mjs";

export { BUSYBOX, DEBIAN } from "../../../scripts/docker-images.mjs";

/** Set when the engine did not start before the tests: the reason. */
export const FAILED_ENGINE = "GLOVEBOX_TEST_FAILED_ENGINE";

/** Why tests that need an engine with these images are not run; undefined when they can be. */
export function whyNoDocker(...images: string[]): string | undefined {
  return whyNoEngine() ?? process.env[FAILED_ENGINE] ?? images.map(whyNoImage).find((reason) => reason !== undefined);
}

/** It starts itself anew for each small step of its own: what that leaves behind is not worth collecting. */
const SPARING = { GOGC: "off", GOMEMLIMIT: "256MiB" };

/**
 * The Docker engine of this test run, with these images, as `DOCKER_HOST` from now on. The first who asks starts it, and
 * builds the images: `npm test` does so before any test. A hook that asks has `SET_UP_LIMIT`. It ends with the run.
 */
export async function useEngine(...images: string[]): Promise<string> {
  const place = process.env["GLOVEBOX_TEST_PLACE"];
  const leasePid = Number(process.env["GLOVEBOX_TEST_RUN"]);
  if (place === undefined) throw new Error("there is no place for a Docker engine: vitest ran without its set-up");
  const folder = join(place, "engine");
  const host = await oneAtATime(join(place, "starting"), async () => {
    const engine = existsSync(join(folder, "keeper.pid"))
      ? describeEngine(folder)
      : await startEngine(folder, { leasePid, env: SPARING });
    await waitForEngine(folder);
    return engine.host;
  });
  for (const image of images) {
    await oneAtATime(join(place, image.replaceAll(/\W/g, "-")), () => ensureImage(host, image));
  }
  process.env["DOCKER_HOST"] = host;
  return host;
}

/** Only one process of the run does this work at a time. A lock of a dead process counts for nothing. */
async function oneAtATime<T>(lock: string, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      await symlink(String(process.pid), lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      const holder = await readlink(lock).catch(() => undefined);
      if (holder !== undefined && !existsSync(`/proc/${holder}`)) await rm(lock, { force: true });
      await delay(50);
    }
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
}
