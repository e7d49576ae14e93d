import { step } from "../../../scripts/step.mjs";
import { BUSYBOX, DEBIAN, FAILED_ENGINE, useEngine, whyNoDocker } from "../docker/engine.js";
import { compiledOnce } from "./compiled.js";
import { installPackage, whyNoPackage } from "./installed-package.js";

/** Makes all that several tests share. What cannot be made here fails, or is not run, in the tests that need it. */
export async function prepareForAll(): Promise<void> {
  const engine = whyNoDocker() === undefined ? prepareEngine() : undefined;
  await step("sources for programs of tests", () => void compiledOnce()).catch(() => undefined);
  if (whyNoPackage() === undefined) {
    await step("package, installed", () => void installPackage()).catch(() => undefined);
  }
  await engine;
}

async function prepareEngine(): Promise<void> {
  const images = [BUSYBOX, DEBIAN].filter((image) => whyNoDocker(image) === undefined);
  const before = process.env["DOCKER_HOST"];
  const work = async (progress: (phase: string) => void): Promise<void> => {
    progress("starting");
    await useEngine();
    for (const image of images) {
      progress(`importing ${image}`);
      await useEngine(image);
    }
  };
  await step("Docker engine", work, { isBeside: true }).catch((error: unknown) => {
    process.env[FAILED_ENGINE] = `the Docker engine could not be prepared: ${String(error)}`;
  });
  // Each test that uses it says so; the others find the machine as it is.
  if (before === undefined) delete process.env["DOCKER_HOST"];
  else process.env["DOCKER_HOST"] = before;
}
