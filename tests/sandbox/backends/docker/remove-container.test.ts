import { beforeEach, expect, test } from "vitest";
import { containerConfig } from "../../../../src/sandbox/backends/docker/container-config.js";
import { removeContainer } from "../../../../src/sandbox/backends/docker/remove-container.js";
import { useScriptedEngine } from "../../../support/docker/scripted-engine.js";

let listed: object[];
let asked: string[];
beforeEach(() => {
  listed = [];
  asked = [];
});

/** Knows containers by their ids only. */
const engine = useScriptedEngine(({ method, url = "" }, response) => {
  const { pathname, searchParams } = new URL(url, "http://engine");
  const path = pathname.replace(/^\/v[\d.]+/, "");
  asked.push(`${method} ${path} ${searchParams.get("filters") ?? ""}`.trim());
  if (path === "/containers/json") response.end(JSON.stringify(listed));
  else if (path.endsWith("/one")) response.writeHead(404).end('{"message":"no such container"}');
  else response.writeHead(204).end();
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
  await removeContainer(engine(), "one");
  expect(asked).toEqual(["DELETE /containers/one", LOOK, "DELETE /containers/b2"]);
});

test("another container, which has a name, is left alone", async () => {
  listed = [{ Id: "a1", Names: ["/another"] }];
  await removeContainer(engine(), "one");
  expect(asked).toEqual(["DELETE /containers/one", LOOK]);
});
