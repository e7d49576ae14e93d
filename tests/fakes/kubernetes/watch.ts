import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { Refusal } from "./refusal.js";
import type { Change, Store, Stored } from "./store.js";

/** Which objects a watch is about, and since when. */
export interface WatchOrder {
  readonly kind: string;
  readonly namespace: string;
  readonly isSelected: (object: Stored) => boolean;
  /** Absent, empty or `0`: starts with what is there. */
  readonly from: string | null;
  readonly seconds: number;
}

/**
 * Answers a watch, one line for each change, until its time is over, it is ended, or the history it needs is forgotten. Each line comes in two
 * pieces, as a network may cut it. Returns what ends it.
 */
export function answerWatch(store: Store, order: WatchOrder, response: ServerResponse): () => void {
  const isFresh = order.from === null || order.from === "" || order.from === "0";
  let at = isFresh ? store.version : Number(order.from);
  let writing = Promise.resolve();
  let isOver = false;
  response.writeHead(200, { "Content-Type": "application/json", "Transfer-Encoding": "chunked" });
  response.flushHeaders();

  const write = (type: string, object: unknown): void => {
    const line = Buffer.from(`${JSON.stringify({ type, object })}\n`);
    const middle = Math.floor(line.length / 2);
    writing = writing.then(async () => {
      response.write(line.subarray(0, middle));
      await delay(1);
      response.write(line.subarray(middle));
    });
  };
  const report = ({ type, version, object }: Change): void => {
    if (isOver || version <= at) return;
    at = version;
    const isMine =
      object.kind === order.kind && (order.namespace === "" || object.metadata.namespace === order.namespace);
    if (isMine && order.isSelected(object)) write(type, object);
  };
  const off = store.on(report);
  const end = (): void => {
    if (isOver) return;
    isOver = true;
    off();
    clearTimeout(timer);
    void writing.then(() => response.end());
  };
  const timer = setTimeout(end, order.seconds * 1_000);
  timer.unref();
  response.on("close", end);

  if (!isFresh && at < store.oldest) {
    write("ERROR", new Refusal(410, "Expired", `too old resource version: ${at} (${store.oldest})`).body);
    end();
    return end;
  }
  if (isFresh)
    for (const object of store.list(order.kind, order.namespace).filter(order.isSelected)) write("ADDED", object);
  else for (const change of store.since(at)) report(change);
  return end;
}
