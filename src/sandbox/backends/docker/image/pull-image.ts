import { registryOf } from "../../registry-login.js";
import type { Engine } from "../engine/engine.js";
import { EngineError } from "../engine/engine-error.js";
import { type ProgressLine, readProgress } from "../engine/progress.js";
import { pullCredentials } from "../engine/registry-credentials.js";

/** Progress of a pull, in bytes of the layers known so far. */
type PullProgress = { readonly current: number; readonly total: number };

/** Pulls an image, with the user's credentials if there are any. */
export async function pullImage(
  engine: Engine,
  image: string,
  opts: { signal?: AbortSignal | undefined; onProgress?: (progress: PullProgress) => void } = {},
): Promise<void> {
  const headers = await pullCredentials(image);
  const digest = image.indexOf("@");
  const colon = /:([^/]+)$/.exec(image);
  const [fromImage, tag] =
    digest !== -1
      ? [image.slice(0, digest), image.slice(digest + 1)]
      : colon === null
        ? [image, "latest"]
        : [image.slice(0, colon.index), colon[1]];
  const { signal } = opts;
  const layers = new Map<string, PullProgress>();
  try {
    const query = { fromImage, tag };
    const answer = await engine.stream("POST", "/images/create", { query, headers, signal });
    for await (const line of readProgress(answer as AsyncIterable<Buffer>, `Pulling ${image}`)) {
      if (note(line, layers)) opts.onProgress?.(sum(layers));
    }
  } catch (error) {
    throw error instanceof EngineError ? explain(error, image) : error;
  }
}

/** The same for a refusal, which an engine reports at once, and for a failure that it reports in the progress. */
function explain({ code, message, status }: EngineError, image: string): EngineError {
  const isLimited = /too ?many ?requests/i.test(message);
  const login = `docker login ${registryOf(image)}`;
  const hint = isLimited ? `${login}, which raises the limit` : code === "unauthenticated" ? login : undefined;
  const reason = message.replace(/^(Docker refuses [^:]*|Pulling .*? failed): /, "");
  return new EngineError(code, `Pulling ${image} failed: ${reason}`, status, { hint });
}

function note({ id, status, progressDetail }: ProgressLine, layers: Map<string, PullProgress>): boolean {
  if (id === undefined || status !== "Downloading") return false;
  const { current = 0, total = 0 } = progressDetail ?? {};
  layers.set(id, { current, total: Math.max(total, current) });
  return true;
}

function sum(layers: ReadonlyMap<string, PullProgress>): PullProgress {
  let [current, total] = [0, 0];
  for (const layer of layers.values()) {
    current += layer.current;
    total += layer.total;
  }
  return { current, total };
}
