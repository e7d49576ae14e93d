import { afterAll, beforeAll } from "vitest";
import { BUSYBOX, ensureArchive } from "../../../scripts/image-cache.mjs";
import { control } from "./cluster.js";
import { ImageRegistry, type ImageWords } from "./image-registry.js";

/** An image with the files of BusyBox for the tests of a suite, in a registry of its own and on the nodes. Gives its full name. */
export function useInstalledImage(name: string, words: ImageWords = {}): () => string {
  let registry: ImageRegistry | undefined;
  let image = "";
  beforeAll(async () => {
    registry = await ImageRegistry.start();
    image = registry.add(name, words);
    await control("import", { name: image, archive: await ensureArchive(BUSYBOX), config: words });
  });
  afterAll(async () => {
    await registry?.[Symbol.asyncDispose]();
  });
  return () => image;
}
