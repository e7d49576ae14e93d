import { findEndpoint } from "../../../src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../../src/sandbox/backends/docker/engine/engine.js";

/** How long the engine takes, from `work` on, until it has taken away so many containers with a label; in milliseconds. */
export async function untilDestroyed(label: string, count: number, work: () => unknown): Promise<number> {
  const engine = new Engine(findEndpoint());
  const filters = { type: ["container"], event: ["destroy"], label: [label] };
  const events = await engine.stream("GET", "/events", { query: { filters } });
  try {
    const before = performance.now();
    await work();
    let seen = 0;
    for await (const piece of events as AsyncIterable<Buffer>) {
      seen += piece.toString().split("\n").filter(Boolean).length;
      if (seen >= count) return performance.now() - before;
    }
    throw new Error("the engine has ended its events");
  } finally {
    events.destroy();
    engine.close();
  }
}
