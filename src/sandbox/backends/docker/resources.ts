import type { Resource } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { snapshotIds } from "../../../ledger.js";
import { removeGitResource } from "../../git.js";
import type { EndpointChoice } from "./engine/endpoint.js";
import type { Engine } from "./engine/engine.js";
import { EngineError } from "./engine/engine-error.js";
import { engineOf } from "./engine/engines.js";
import { removeContainer } from "./remove-container.js";

/** An object on an engine, as recorded in the ledger. */
export interface EngineResource {
  /** `snapshot-image`: an image that stays as long as the ledger has its snapshot. */
  readonly kind: "container" | "image" | "network" | "snapshot-image";
  readonly name: string;
  readonly engine: EndpointChoice;
  readonly [field: string]: unknown;
}

/** Removes a recorded resource from its engine. A resource that doesn't exist is no error. */
export async function removeResource(resource: Resource): Promise<void> {
  if (await removeGitResource(resource)) return;
  const { kind, name, engine: choice, snapshot } = resource as EngineResource;
  if (typeof name !== "string") throw new SandboxError("tampered", `A record names a ${kind} without a name`);
  const engine = engineOf(choice);
  if (kind === "container") await removeContainer(engine, name);
  else if (kind === "image") await removeImage(engine, name);
  else if (kind === "network") await removeNetwork(engine, name);
  else if (kind !== "snapshot-image") {
    throw new SandboxError("unsupported", `The docker backend has no resource of the kind "${kind}"`);
  } else if (!(await snapshotIds()).includes(String(snapshot))) await removeImage(engine, name);
}

/** Removes an image, unless a container uses it: then the owner of that container will. */
export async function removeImage(
  engine: Engine,
  name: string,
  { force = false }: { force?: boolean } = {},
): Promise<void> {
  await engine.call("DELETE", `/images/${name}`, { query: { force } }).catch((error: unknown) => {
    if (!(error instanceof EngineError) || (error.status !== 404 && error.status !== 409)) throw error;
  });
}

/** Removes a network. */
export async function removeNetwork(engine: Engine, name: string): Promise<void> {
  await engine.call("DELETE", `/networks/${name}`).catch((error: unknown) => {
    if (!(error instanceof EngineError) || error.status !== 404) throw error;
  });
}
