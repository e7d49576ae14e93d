import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../errors.js";
import type { Engine } from "./engine.js";
import { EngineError } from "./engine-error.js";

const PATIENCE = 30_000;

/** Takes a container away, with its anonymous volumes, whatever it does; one that is not there is no error. */
export async function removeContainer(engine: Engine, name: string): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  for (let pause = 5; ; pause = Math.min(pause * 2, 200)) {
    try {
      await engine.call("DELETE", `/containers/${name}`, { query: { force: true, v: true }, timeout: PATIENCE });
      return;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.status === 404) return;
      // Somebody else is at it, the engine itself for example; or it is busy with the container.
      if (error.status !== 409 && error.status !== 500) throw error;
      if (performance.now() > deadline) {
        throw new SandboxError("unavailable", `The container ${name} cannot be removed`, { cause: error });
      }
      await delay(pause);
    }
  }
}
