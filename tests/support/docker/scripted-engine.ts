import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { Engine } from "../../../src/sandbox/backends/docker/engine/engine.js";
import { createScratch, type Scratch } from "../scratch.js";

/** An engine that answers as a test says, anew for each test of a file. */
export function useScriptedEngine(answer: RequestListener): () => Engine {
  let scratch: Scratch;
  let engine: Engine;
  let close: () => void;
  beforeEach(async () => {
    scratch = createScratch();
    const server = createServer(answer);
    const socketPath = join(scratch.path, "engine.sock");
    await once(server.listen(socketPath), "listening");
    engine = new Engine({ name: "test", socketPath });
    close = () => void server.close();
  });
  afterEach(() => {
    engine.close();
    close();
    scratch.remove();
  });
  return () => engine;
}
