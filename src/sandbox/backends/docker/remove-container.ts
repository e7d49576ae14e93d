import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Engine } from "./engine/engine.js";
import { EngineError } from "./engine/engine-error.js";
import { CONTAINER_LABEL } from "./labels.js";

interface Listed {
  readonly Id: string;
  readonly Names?: readonly string[] | null;
}

const PATIENCE = 30_000;
const GOING = 3_000;

/** Removes a container with its anonymous volumes, even if it is running. A container that doesn't exist is no error. */
export async function removeContainer(engine: Engine, name: string): Promise<void> {
  if (await removeKnown(engine, name)) return;
  const nameless = await findNameless(engine, name);
  if (nameless !== undefined) await removeKnown(engine, nameless);
}

/** False if the engine knows no container by this name or id. */
async function removeKnown(engine: Engine, reference: string): Promise<boolean> {
  const deadline = performance.now() + PATIENCE;
  for (let pause = 5; ; pause = Math.min(pause * 2, 200)) {
    try {
      await engine.call("DELETE", `/containers/${reference}`, { query: { force: true, v: true }, timeout: PATIENCE });
      return true;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.status === 404) return false;
      // It is being removed already, for example by the engine itself, or the engine is busy with it.
      if (error.status !== 409 && error.status !== 500) throw error;
      if (performance.now() > deadline) {
        throw new SandboxError("unavailable", `The container ${reference} cannot be removed`, { cause: error });
      }
      await delay(pause);
    }
  }
}

/** An engine that was killed while it removed a container has it without a name when it comes back, and may not go on by itself. */
async function findNameless(engine: Engine, name: string): Promise<string | undefined> {
  const query = { all: true, filters: { label: [`${CONTAINER_LABEL}=${name}`] } };
  const found = await engine.call<Listed[]>("GET", "/containers/json", { query, timeout: PATIENCE });
  return found.find(({ Names }) => (Names ?? []).length === 0)?.Id;
}

/**
 * Removes a container that the engine removes by itself when its first process ends, which `hangUp` causes. This is less work
 * for the engine than a removal; a container that stays is removed.
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
