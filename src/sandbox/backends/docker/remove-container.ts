import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Engine } from "./engine/engine.js";
import { EngineError } from "./engine/engine-error.js";

const PATIENCE = 30_000;
const GOING = 3_000;

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

/**
 * Lets a container go that the engine takes away by itself once its first process has ended: `hangUp` makes it end. That is less
 * work for the engine than to end it; one that does not go is taken away.
 */
export async function leaveContainer(engine: Engine, name: string, hangUp: () => void): Promise<void> {
  const path = `/containers/${name}/wait`;
  const gone = engine.call<{ Error?: object | null }>("POST", path, {
    query: { condition: "removed" },
    timeout: GOING,
  });
  hangUp();
  const isGone = await gone.then(
    (answer) => !answer.Error,
    (error: unknown) => error instanceof EngineError && error.status === 404,
  );
  if (!isGone) await removeContainer(engine, name);
}
