import type { BuildStage } from "../../../../../contracts/container-engine.js";
import type { Engine } from "../engine/engine.js";
import { readProgress } from "../engine/progress.js";
import { buildCredentials } from "../engine/registry-credentials.js";
import type { BuildContext } from "./build-context.js";

/** Builds and tags an image. `onLine` gets every line of its log. A failed step is an error with the end of the log. */
export async function buildImage(
  engine: Engine,
  { tag, buildArgs = {}, parentTag }: BuildStage,
  context: BuildContext,
  opts: { signal: AbortSignal; labels: Readonly<Record<string, string>>; onLine(line: string): void },
): Promise<void> {
  const { signal, labels, onLine } = opts;
  const buildargs = parentTag === undefined ? buildArgs : { ...buildArgs, BASE_IMAGE: parentTag };
  const answer = await engine.stream("POST", "/build", {
    // Without forcerm a failed build leaves a container.
    query: { t: tag, dockerfile: context.dockerfile, buildargs, labels, rm: true, forcerm: true },
    headers: await buildCredentials(context.bases),
    body: context.pack(),
    signal,
    timeout: BUILD_PATIENCE,
  });
  for await (const { stream } of readProgress(answer as AsyncIterable<Buffer>, `Building ${tag}`)) {
    for (const line of (stream ?? "").split("\n")) if (line.trim() !== "") onLine(line.trimEnd());
  }
}

/** The engine answers only when it has received the whole context. */
const BUILD_PATIENCE = 600_000;
