import type { Container } from "@dagger.io/dagger";
import type { Session } from "./session.js";

/**
 * An engine mounts all layers of a container at once, and the options of a mount have room for about 440. Every command and every file change is a
 * layer, an image has up to 127, and commands of `setup` come on top. So a chain is flattened after every 100 layers of ours.
 */
export const MAX_OWN_LAYERS = 100;

const counts = new WeakMap<Container, number>();

/** How many layers of ours a container has. */
export function layersOf(container: Container): number {
  return counts.get(container) ?? 0;
}

/** Records how many layers of ours a container has. */
export function withLayers(container: Container, count: number): Container {
  counts.set(container, count);
  return container;
}

/** The same container with all files in one layer. An engine copies with hard links, so this costs about a walk over the files. */
export function flattened({ client }: Pick<Session, "client">, container: Container): Container {
  return container.withRootfs(client.directory().withDirectory("/", container.rootfs()));
}
