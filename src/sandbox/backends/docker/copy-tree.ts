import { posix } from "node:path";
import type { Engine } from "./engine/engine.js";

const PATIENCE = 600_000;

/** Copies a directory of one container over that of another, with owners and modes. It may be a volume. */
export async function copyTree(engine: Engine, from: string, to: string, path: string): Promise<void> {
  const files = await engine.stream("GET", `/containers/${from}/archive`, { query: { path }, timeout: PATIENCE });
  await engine.call("PUT", `/containers/${to}/archive`, {
    // The archive starts with the directory itself.
    query: { path: posix.dirname(path) },
    body: files as AsyncIterable<Uint8Array>,
    timeout: PATIENCE,
  });
}
