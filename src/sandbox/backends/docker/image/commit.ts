import { SandboxError } from "../../../../../contracts/errors.js";
import type { Engine } from "../engine/engine.js";
import { readProgress } from "../engine/progress.js";

/** Storage drivers allow only slightly more. */
const MOST_LAYERS = 100;

/**
 * Saves the files of a container as an image of this name, and returns how many layers it has. Each commit adds one; before
 * there are too many, all files are written to a single layer.
 */
export async function commitContainer(
  engine: Engine,
  container: string,
  image: string,
  from: { layers: number },
  labels: Readonly<Record<string, string>>,
): Promise<number> {
  const changes = Object.entries(labels).map(([key, value]) => `LABEL ${JSON.stringify(key)}=${JSON.stringify(value)}`);
  const [repo, tag] = splitTag(image);
  if (from.layers >= MOST_LAYERS) {
    await flatten(engine, container, repo, tag, changes);
    return 1;
  }
  await engine.call("POST", "/commit", {
    query: { container, repo, tag, pause: true, changes: changes.join("\n") },
    body: {},
    timeout: COMMIT_PATIENCE,
  });
  return from.layers + 1;
}

async function flatten(
  engine: Engine,
  container: string,
  repo: string,
  tag: string,
  changes: readonly string[],
): Promise<void> {
  const files = await engine.stream("GET", `/containers/${container}/export`, { timeout: COMMIT_PATIENCE });
  const answer = await engine.stream("POST", "/images/create", {
    query: { fromSrc: "-", repo, tag, changes: changes.join("\n") },
    body: files as AsyncIterable<Uint8Array>,
    timeout: COMMIT_PATIENCE,
  });
  for await (const _ of readProgress(answer as AsyncIterable<Buffer>, `Saving ${repo}:${tag}`)) {
    // Reads to the end: the last line may be an error.
  }
}

function splitTag(image: string): [string, string] {
  const border = image.lastIndexOf(":");
  if (border === -1) throw new SandboxError("internal", `The image ${image} has no tag`);
  return [image.slice(0, border), image.slice(border + 1)];
}

/** Hundreds of megabytes take seconds. */
const COMMIT_PATIENCE = 600_000;
