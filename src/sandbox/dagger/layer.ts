import { chmod } from "node:fs/promises";
import type { Container } from "@dagger.io/dagger";
import { SandboxError } from "../errors.js";
import { MAX_IMPORT_BYTES } from "../types.js";
import { daggerError } from "./failure.js";
import type { Session } from "./session.js";

/** Lies in every layer, so that none is empty: not every engine can pack nothing. */
const MARK = "/.glovebox/layer";

/**
 * Packs what became of a container since its base into a file, anywhere in its file system, and gives the paths that are
 * gone. With the base they are a log of effects: done again on any engine, whatever the commands would do today.
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

/** A base with such a layer on it: the container as it was, in an engine that has never seen it. */
export async function applyLayer(
  { client }: Session,
  base: Container,
  path: string,
  removed: readonly string[],
): Promise<Container> {
  try {
    const layer = client.container().import_(client.host().file(path)).rootfs();
    let container = base;
    for (const name of removed) if (name.endsWith("/")) container = container.withoutDirectory(`/${name}`);
    const files = removed.filter((name) => !name.endsWith("/")).map((name) => `/${name}`);
    if (files.length > 0) container = container.withoutFiles(files);
    return await container.withDirectory("/", layer).sync();
  } catch (error) {
    throw daggerError(error, "The Dagger engine could not bring the files of a snapshot back");
  }
}
