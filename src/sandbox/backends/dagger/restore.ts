import { createReadStream } from "node:fs";
import type { Container } from "@dagger.io/dagger";
import { SandboxError } from "../../../../contracts/errors.js";
import { replaceFiles } from "../../git.js";
import { GuestFiles } from "../../guest.js";
import { otherPlace } from "../../lifecycle.js";
import { buildBase, WORK_DIR } from "./base.js";
import type { DaggerOptions } from "./dagger-options.js";
import type { DaggerDriver } from "./driver.js";
import { applyLayer } from "./layer.js";
import type { Recipe, Saved } from "./recipe.js";
import type { Session } from "./session.js";
import { findSnapshot, type SnapshotOrigin } from "./snapshot.js";
import { Steps } from "./steps.js";

/** Restores a snapshot: the whole sandbox or, while something runs in it, the files of its work directory. */
export async function restoreSnapshot(
  driver: DaggerDriver,
  origin: SnapshotOrigin & { readonly dagger: DaggerOptions },
  id: string,
): Promise<void> {
  const { archive, saved } = await findSnapshot(id);
  const { session, base, recipe } = origin;
  const known = session.snapshots.get(id);
  if (known === undefined && !isSameImage(saved, recipe)) {
    throw new SandboxError("conflict", `The snapshot "${id}" was taken from the image ${saved.image}`, {
      retryable: false,
      hint: digestOf(saved)
        ? `open a sandbox with image: "${saved.image}"`
        : "it was saved without the image's digest, so the same image can't be found again; take a new snapshot",
    });
  }
  const { workDir = WORK_DIR, removed } = saved;
  if (removed !== undefined && workDir !== driver.workDir) throw otherPlace(id, workDir);
  const container = known ?? (await rebuild(origin, saved, archive));
  if (container !== undefined && (await driver.steps.isIdle())) {
    driver.steps.replace(container);
    return;
  }
  driver.onWarning?.(`Only the files in ${driver.workDir} were restored; other files stay as they are`);
  if (driver.steps.isLost) driver.steps.replace(base.container);
  const files = container === undefined ? createReadStream(archive) : filesOf(session, container, workDir);
  await replaceFiles({ driver }, [files], { keepGit: false });
}

/** Whether two recipes start from the same files. A tag can move; a digest can't. */
function isSameImage(one: Recipe, other: Recipe): boolean {
  return digestOf(one) !== undefined && digestOf(one) === digestOf(other);
}

function digestOf({ image }: Recipe): string | undefined {
  return image.split("@")[1];
}

/** Rebuilds a container from its recipe. Undefined if only the work directory was saved with it. */
async function rebuild(
  { session, base, recipe, dagger }: SnapshotOrigin & { readonly dagger: DaggerOptions },
  saved: Saved,
  archive: string,
): Promise<Container | undefined> {
  const { setup, removed } = saved;
  if (removed === undefined) return undefined;
  const isSame = JSON.stringify(setup) === JSON.stringify(recipe.setup);
  const { signal } = new AbortController();
  const from = isSame ? base : await buildBase(session, saved, { ...dagger, setup }, signal);
  return await applyLayer(session, from.container, archive, removed);
}

/** The work directory of a container that no sandbox uses. */
async function* filesOf(session: Session, container: Container, workDir: string): AsyncGenerator<Uint8Array> {
  const steps = new Steps(session, container, { workDir, secrets: [], linger: 0, services: new Map() });
  try {
    const { channel } = await steps.acquire(false);
    yield* new GuestFiles(channel, () => "").exportTree(workDir);
  } finally {
    await steps.close();
  }
}
