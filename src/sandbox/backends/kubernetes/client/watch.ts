import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { type KubeClient, type ObjectSelector, selectorQuery } from "./kube-client.js";
import { type ApiStatus, connectionError, hasStatus, KubeError, statusError } from "./kube-error.js";
import { type KubeObject, type ObjectPlace, pathOf, type ResourceKind } from "./resources.js";

/** The server is asked to end a watch after this time, in seconds; one that goes on is cut. So a dead connection is noticed. */
const LENGTH = 60;
const SLACK = 10;
/** A line that never ends would fill the memory. */
const MAX_LINE = 16 << 20;
const FIRST_PAUSE = 200;
const LONGEST_PAUSE = 5_000;

/** What a watch reports. */
export type WatchEvent<T> =
  | { readonly type: "set" | "gone"; readonly object: T }
  /** Changes were missed. These are all objects that there are now; what is not among them is gone. */
  | { readonly type: "all"; readonly objects: readonly T[] };

interface Line {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: KubeObject & ApiStatus;
}

/**
 * Follows objects until the signal is aborted, across connections that end. Starts with those that are there, or after `resourceVersion`. A failure
 * that waiting doesn't help, such as a missing right, is thrown.
 */
export async function* watch<T extends KubeObject>(
  client: KubeClient,
  kind: ResourceKind,
  place: ObjectPlace,
  { signal, resourceVersion, ...selector }: ObjectSelector & { signal: AbortSignal; resourceVersion?: string },
): AsyncGenerator<WatchEvent<T>, never> {
  let from = resourceVersion;
  // The first objects of a watch come in no order, so one that is cut among them can't be continued. A single object needs no list.
  let needsList = from === undefined && selector.fields?.startsWith("metadata.name=") !== true;
  for (let failures = 0; ; ) {
    let hasEvents = false;
    try {
      if (needsList) {
        const { items, resourceVersion: version } = await client.list<T>(kind, place, selector, { signal });
        from = version;
        needsList = false;
        yield { type: "all", objects: items };
      }
      for await (const { type, object } of oneConnection(client, pathOf(kind, place), selector, from, signal)) {
        failures = 0;
        hasEvents = true;
        from = object.metadata.resourceVersion ?? from;
        if (type !== "BOOKMARK") yield { type: type === "DELETED" ? "gone" : "set", object: object as unknown as T };
      }
      // A server that ends each watch at once must not be asked without a pause.
      if (!hasEvents) await sleep(FIRST_PAUSE, undefined, { signal });
    } catch (raw) {
      signal.throwIfAborted();
      const error = connectionError(raw, client.access.server.origin, `watch ${kind.plural}`);
      // Its history does not reach back that far.
      if (hasStatus(error, 410)) needsList = true;
      else if (!(error instanceof KubeError) || error.code !== "unavailable") throw error;
      failures += 1;
      const pause = (error as KubeError).retryAfter ?? Math.min(FIRST_PAUSE * 2 ** (failures - 1), LONGEST_PAUSE);
      await sleep(pause, undefined, { signal });
    }
  }
}

async function* oneConnection(
  client: KubeClient,
  path: string,
  selector: ObjectSelector,
  from: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Line> {
  const query = {
    ...selectorQuery(selector),
    watch: true,
    allowWatchBookmarks: true,
    timeoutSeconds: LENGTH,
    resourceVersion: from,
  };
  const answer = await client.stream({ path, query }, { signal });
  const timer = setTimeout(() => answer.destroy(), (LENGTH + SLACK) * 1_000);
  timer.unref();
  try {
    for await (const text of linesOf(answer)) {
      const line = JSON.parse(text) as Line;
      if (line.type === "ERROR") throw statusError("go on watching", line.object);
      yield line;
    }
  } finally {
    clearTimeout(timer);
    answer.destroy();
  }
}

/** Lines may be cut anywhere, also within a character. */
async function* linesOf(answer: IncomingMessage): AsyncGenerator<string> {
  let pieces: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...pieces, chunk.subarray(start, end)]).toString("utf8");
      pieces = [];
      length = 0;
      start = end + 1;
      if (line.trim() !== "") yield line;
    }
    if (start === chunk.length) continue;
    pieces.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > MAX_LINE) throw new KubeError("tampered", `A watch sent a line of more than ${MAX_LINE} bytes`);
  }
}
