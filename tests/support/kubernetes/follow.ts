import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { testCluster } from "./cluster.js";

/** An object of the cluster, as far as tests look at it. */
export interface AnyObject {
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; uid: string };
  // biome-ignore lint/suspicious/noExplicitAny: what is in it depends on its kind.
  spec?: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  status?: any;
}

/**
 * Holds all objects of a collection while the cluster changes them, until the signal; `onChange` is called after each change. Continues with the
 * whole collection when its connection ends.
 */
export async function follow(
  path: string,
  signal: AbortSignal,
  onChange: (objects: readonly AnyObject[]) => void,
): Promise<void> {
  while (!signal.aborted) {
    const objects = new Map<string, AnyObject>();
    try {
      for await (const { type, object } of eventsOf(path, signal)) {
        if (type === "DELETED") objects.delete(object.metadata.uid);
        else objects.set(object.metadata.uid, object);
        onChange([...objects.values()]);
      }
    } catch {
      // The server is away; it is asked again.
    }
    await delay(100, undefined, { signal }).catch(() => undefined);
  }
}

async function* eventsOf(path: string, signal: AbortSignal): AsyncGenerator<{ type: string; object: AnyObject }> {
  const { server, ca, tokens } = testCluster();
  const headers = { authorization: `Bearer ${tokens.admin}` };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`${server}${path}?watch=true`, { ca, headers, agent: false, signal })
      .on("response", resolve)
      .on("error", reject)
      .end();
  });
  let held = "";
  for await (const piece of answer.setEncoding("utf8") as AsyncIterable<string>) {
    const lines = (held + piece).split("\n");
    held = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line) as { type: string; object: AnyObject };
  }
}
