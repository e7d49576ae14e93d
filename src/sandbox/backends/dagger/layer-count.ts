import type { Container } from "@dagger.io/dagger";
import type { Session } from "./session.js";

/**
 * An engine mounts all layers of a container at once, and the options of a mount have room for about 440 of them. Every command and
 * every change of a file is a layer, an image has up to 127, and commands of `setup` come on top. So a chain is flattened in
 * time: after every 100 layers of ours.
 */
export const MAX_OWN_LAYERS = 100;

const counts = new WeakMap<Container, number>();

/** How many layers of ours a container has. */
export function layersOf(container: Container): number {
  return counts.get(container) ?? 0;
}

/** Notes how many layers of ours a container has. */
export function withLayers(container: Container, count: number): Container {
  counts.set(container, count);
  return container;
}

/**
 * The same container with all its files in one layer. Nothing is read for it: an engine copies between its layers by hard links, so it
 * costs about as much as a walk over the files.
 */
export function flattened({ client }: Pick<Session, "client">, container: Container): Container {
  return container.withRootfs(client.directory().withDirectory("/", container.rootfs()));
}
