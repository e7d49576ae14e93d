import { createHash } from "node:crypto";
import type { BuildStage, ImageOptions, ImageRequest } from "../../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { Engine } from "../engine/engine.js";
import { type BuildContext, openContext } from "./build-context.js";
import { buildImage } from "./build-image.js";
import { findImage, type ImageConfig } from "./image-config.js";
import { pullImage } from "./pull-image.js";

/** On a built image: the digest of everything it was built from, so that it is rebuilt exactly when that changes. */
const CONTENT_LABEL = "glovebox.content";

/** Makes sure that an image exists and is up to date. */
export async function ensureImage(
  engine: Engine,
  { tag, build, parentId }: ImageRequest,
  { verifyOnly, signal, onProgress }: ImageOptions,
): Promise<ImageConfig> {
  const planned = build && (await planBuild(build, parentId));
  const present = await findImage(engine, tag, signal);
  const content = present?.labels[CONTENT_LABEL];
  if (present !== undefined) {
    if (planned === undefined || content === planned.content) return present;
    // An image that was built elsewhere doesn't say what it was built from.
    if (verifyOnly && content === undefined) return present;
  }
  if (verifyOnly) throw present === undefined ? missing(tag, build) : outOfDate(tag);
  if (planned !== undefined) {
    onProgress(`building ${tag}`);
    const onLine = (line: string): void => onProgress(line, stepOf(line));
    await buildImage(engine, planned.build, planned.context, {
      signal,
      labels: { [CONTENT_LABEL]: planned.content },
      onLine,
    });
  } else {
    onProgress(`pulling ${tag}`);
    await pullImage(engine, tag, { signal, onProgress: (progress) => onProgress(`pulling ${tag}`, progress) });
  }
  const made = await findImage(engine, tag, signal);
  if (made !== undefined) return made;
  throw new SandboxError("unavailable", `The image "${tag}" disappeared from the engine`, { backend: "docker" });
}

function stepOf(line: string): { current: number; total: number } | undefined {
  const [, current, total] = /^Step (\d+)\/(\d+) : /.exec(line) ?? [];
  return total === undefined ? undefined : { current: Number(current), total: Number(total) };
}

async function planBuild(
  build: BuildStage,
  parentId = "",
): Promise<{ build: BuildStage; context: BuildContext; content: string }> {
  const context = await openContext(build);
  const args = Object.entries(build.buildArgs ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const parts = [
    await context.digest(),
    context.dockerfile,
    args,
    parentId,
    build.parentTag ?? "",
    build.cacheKey ?? "",
  ];
  return { build, context, content: createHash("sha256").update(JSON.stringify(parts)).digest("hex") };
}

function missing(tag: string, build: BuildStage | undefined): SandboxError {
  return new SandboxError("not_found", `The image "${tag}" is missing, and verifyOnly forbids to pull or build it`, {
    backend: "docker",
    hint: build === undefined ? `docker pull ${tag}` : `docker build -t ${build.tag} ${build.contextPath}`,
  });
}

function outOfDate(tag: string): SandboxError {
  return new SandboxError(
    "conflict",
    `The image "${tag}" is out of date: its context, arguments or parent have changed`,
    {
      backend: "docker",
      retryable: false,
      hint: "build it again, or set verifyOnly to false",
    },
  );
}
