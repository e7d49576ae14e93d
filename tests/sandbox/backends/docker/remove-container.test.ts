import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { containerConfig } from "../../../../src/sandbox/backends/docker/container-config.js";
import { Engine } from "../../../../src/sandbox/backends/docker/engine/engine.js";
import { removeContainer } from "../../../../src/sandbox/backends/docker/remove-container.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let engine: Engine;
let close: () => void;
let listed: object[];
let asked: string[];

/** An engine that knows containers by their ids only. */
beforeEach(async () => {
  scratch = createScratch();
  listed = [];
  asked = [];
  const server = createServer(({ method, url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://engine");
    const path = pathname.replace(/^\/v[\d.]+/, "");
    asked.push(`${method} ${path} ${searchParams.get("filters") ?? ""}`.trim());
    if (path === "/containers/json") response.end(JSON.stringify(listed));
    else if (path.endsWith("/one")) response.writeHead(404).end('{"message":"no such container"}');
    else response.writeHead(204).end();
  });
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

const LOOK = 'GET /containers/json {"label":["glovebox.container=one"]}';

test("a container that lost its name when the engine was killed is found by its label", async () => {
  const plan = { name: "one", labels: {}, limits: {}, mounts: [], network: "none" } as unknown;
  const config = containerConfig(plan as Parameters<typeof containerConfig>[0], { Type: "bind" } as never);
  expect(config).toMatchObject({ Labels: { "glovebox.container": "one" } });
  listed = [
    { Id: "a1", Names: ["/another"] },
    { Id: "b2", Names: null },
  ];
  await removeContainer(engine, "one");
  expect(asked).toEqual(["DELETE /containers/one", LOOK, "DELETE /containers/b2"]);
});

test("another container, which has a name, is left alone", async () => {
  listed = [{ Id: "a1", Names: ["/another"] }];
  await removeContainer(engine, "one");
  expect(asked).toEqual(["DELETE /containers/one", LOOK]);
});
