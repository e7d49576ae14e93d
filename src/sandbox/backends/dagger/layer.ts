import { chmod } from "node:fs/promises";
import type { Container } from "@dagger.io/dagger";
import { SandboxError } from "../../../../contracts/errors.js";
import { GuestFiles } from "../../guest.js";
import { MAX_IMPORT_BYTES } from "../../types.js";
import { daggerError } from "./failure.js";
import { layersOf, withLayers } from "./layer-count.js";
import type { Session } from "./session.js";
import { Steps } from "./steps.js";

/** A file in every layer, so that none is empty: not every engine can pack an empty one. */
const MARK = "/.glovebox/layer";
/** One for names that are removed one by one, one for all others, and one for the files. */
const APPLIED_LAYERS = 3;

/**
 * Packs everything that changed in a container since its base, anywhere in its file system, into a file, and returns the removed paths. Applied to
 * the base on any engine, they give the same files, whatever the commands would do today.
 */
export async function saveLayer(
  { client }: Session,
  base: Container,
  container: Container,
  path: string,
): Promise<string[]> {
  try {
    const changes = await container.rootfs().changes(base.rootfs()).sync();
    const layer = client.container().withRootfs(changes.layer()).withNewFile(MARK, "");
    const [packed, removed] = await Promise.all([layer.asTarball().sync(), changes.removedPaths()]);
    const size = await packed.size();
    if (size > MAX_IMPORT_BYTES) {
      throw new SandboxError("limit_exceeded", `The sandbox has more than ${MAX_IMPORT_BYTES} bytes of changed files`);
    }
    await packed.export(path);
    await chmod(path, 0o600);
    return removed;
  } catch (error) {
    throw daggerError(error, "The Dagger engine could not save the files of the sandbox");
  }
}

/**
 * Applies such a layer to a base: the container as it was, on an engine that has never seen it. All removed paths are one layer: a container would
 * remove one path at a time, each in its own layer; a directory removes all at once.
 */
export async function applyLayer(
  session: Session,
  base: Container,
  path: string,
  removed: readonly string[],
): Promise<Container> {
  const { client } = session;
  try {
    const layer = client.container().import_(client.host().file(path)).rootfs();
    const names = removed.map((name) => name.replace(/\/$/, ""));
    const odd = names.filter(isPattern);
    const plain = names.filter((name) => !isPattern(name));
    let files = (odd.length > 0 ? await removeByGuest(session, base, odd) : base).rootfs();
    if (plain.length > 0) files = files.withoutFiles(plain);
    const container = await base.withRootfs(files.withDirectory("/", layer)).sync();
    return withLayers(container, layersOf(base) + APPLIED_LAYERS);
  } catch (error) {
    throw daggerError(error, "The Dagger engine could not bring the files of a snapshot back");
  }
}

/** Whether an engine could treat a path as a pattern; which characters make it one depends on the engine. */
function isPattern(path: string): boolean {
  return /[*?[\]{}!\\]/.test(path);
}

/** Removes paths by their exact names. It needs a container, so it is only used for names that can't be passed to an engine. */
async function removeByGuest(session: Session, base: Container, paths: readonly string[]): Promise<Container> {
  // The command that removed them may have had more permissions than the image's user.
  const options = { workDir: "/", secrets: [], linger: 0, services: new Map() };
  const steps = new Steps(session, base.withUser("0"), options);
  try {
    await steps.use(true, async (channel) => {
      const files = new GuestFiles(channel, (path) => path);
      for (const path of paths) await files.remove(path, true);
    });
    return steps.current;
  } finally {
    await steps.close();
  }
}
