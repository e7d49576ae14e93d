import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describeEngine, startEngine, waitForEngine, whyNoEngine } from "../../scripts/docker-engine.mjs";
import { ensureImage, whyNoImage } from "../../scripts/docker-images.mjs";

export { BUSYBOX, DEBIAN } from "../../scripts/docker-images.mjs";

/** Why tests that need an engine with these images are not run; undefined when they can be. */
export function whyNoDocker(...images: string[]): string | undefined {
  return whyNoEngine() ?? images.map(whyNoImage).find((reason) => reason !== undefined);
}

/** It starts itself anew for each small step of its own: what that leaves behind is not worth collecting. */
const SPARING = { GOGC: "off", GOMEMLIMIT: "256MiB" };

/**
 * The Docker engine of this test run, with these images, as `DOCKER_HOST` from now on. The first who asks starts it; it
 * ends with the run.
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

async function oneAtATime<T>(lock: string, work: () => Promise<T>): Promise<T> {
  for (let i = 0; ; i++) {
    try {
      await mkdir(lock);
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || i > 4_000) throw error;
      await delay(50);
    }
  }
  try {
    return await work();
  } finally {
    await rm(lock, { recursive: true });
  }
}
