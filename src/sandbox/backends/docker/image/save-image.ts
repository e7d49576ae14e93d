import { randomBytes } from "node:crypto";
import type { SnapshotRecord } from "../../../../../contracts/backend.js";
import { SandboxError } from "../../../../../contracts/errors.js";
import { addResource, readSnapshotRecord, writeSnapshotRecord } from "../../../../ledger.js";
import { failpoint } from "../../../../machine/failpoint.js";
import { isoTime } from "../../../../util/iso-time.js";
import type { TreeBase } from "../../../git.js";
import { otherPlace } from "../../../lifecycle.js";
import type { RunningContainer } from "../container.js";
import type { Engine } from "../engine/engine.js";
import { engineOf } from "../engine/engines.js";
import type { KeptPlan } from "../kept-plan.js";
import { KEPT_LABEL, ownerLabels, SANDBOX_LABEL, SNAPSHOT_LABEL } from "../labels.js";
import { type EngineResource, removeImage } from "../resources.js";
import { commitContainer } from "./commit.js";
import { findImage, type ImageConfig } from "./image-config.js";

/** The part of a snapshot's record that only this backend reads. */
export interface SavedImage {
  readonly image: string;
  readonly kept: KeptPlan;
}

/** An image with the files of a container. */
export interface SavedFiles {
  /** The name to remove it by. */
  readonly name: string;
  readonly config: ImageConfig;
}

/** Saves the files of a container and returns the id of the snapshot. */
export async function saveSnapshot(id: string, container: RunningContainer, kept: KeptPlan): Promise<string> {
  const snapshot = `docker-${randomBytes(8).toString("hex")}`;
  const image = `glovebox/snapshot:${snapshot}`;
  const labels = { ...ownerLabels(), [SNAPSHOT_LABEL]: snapshot, [KEPT_LABEL]: "1" };
  const resource: EngineResource = { kind: "snapshot-image", name: image, engine: kept.engine, snapshot };
  await addResource(id, resource);
  await commitContainer(container.engine, container.id, image, kept, labels);
  await failpoint("snapshot.archived");
  const details: SavedImage = { image, kept };
  await writeSnapshotRecord({
    version: 1,
    id: snapshot,
    sandboxId: id,
    backend: "docker",
    createdAt: isoTime(),
    ...(kept.base && { repo: repoOf(kept.base) }),
    details,
  });
  await failpoint("snapshot.recorded");
  return snapshot;
}

function repoOf({ repository: { url, topLevel, gitDir } }: TreeBase): string {
  return url ?? topLevel ?? gitDir;
}

/** Finds the image of a snapshot, which must have the same source. */
export async function findSnapshot(snapshot: string, kept: KeptPlan): Promise<SavedFiles> {
  const { backend, details } = await readSnapshotRecord(snapshot);
  const saved = details as SavedImage | undefined;
  if (backend !== "docker" || saved?.kept.source !== kept.source) {
    throw new SandboxError(
      "invalid_argument",
      `The snapshot "${snapshot}" belongs to other files than this sandbox's`,
      {
        hint: "open a sandbox of the same image and repository",
      },
    );
  }
  const { workDir } = saved.kept.plan;
  if (workDir !== kept.plan.workDir) throw otherPlace(snapshot, workDir);
  return await findSaved(snapshot, saved, engineOf(kept.engine));
}

/** Finds the image of a snapshot on an engine. */
export async function findSaved(snapshot: string, { image }: SavedImage, engine: Engine): Promise<SavedFiles> {
  const config = await findImage(engine, image);
  if (config !== undefined) return { name: image, config };
  throw new SandboxError("not_found", `The image of snapshot "${snapshot}" is not on the engine: ${image}`);
}

/** Removes the image of a snapshot. Containers that use it are not affected. */
export async function removeSnapshot({ details }: SnapshotRecord): Promise<void> {
  const { image, kept } = details as SavedImage;
  await removeImage(engineOf(kept.engine), image, { force: true });
}

/** Saves the files of a container for its forks. The last fork to go removes the image. */
export async function saveForForks(id: string, container: RunningContainer, kept: KeptPlan): Promise<SavedFiles> {
  const name = `glovebox/fork:${randomBytes(8).toString("hex")}`;
  const resource: EngineResource = { kind: "image", name, engine: kept.engine };
  await addResource(id, resource);
  await commitContainer(container.engine, container.id, name, kept, { ...ownerLabels(), [SANDBOX_LABEL]: id });
  const config = await findImage(container.engine, name);
  if (config !== undefined) return { name, config };
  throw new SandboxError("unavailable", `The image ${name} disappeared from the engine`);
}
