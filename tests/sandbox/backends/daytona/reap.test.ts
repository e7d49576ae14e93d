import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { labelsOf, readLabels } from "../../../../src/sandbox/backends/daytona/labels.js";
import { listSandboxes, reap } from "../../../../src/sandbox.js";
import { type FakeDaytona, startFakeDaytona } from "../../../fakes/daytona/server.js";
import { setEnv } from "../../../support/daytona/service.js";
import { compileSources, startChild } from "../../../support/run/compiled.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
let scratch: Scratch;
let service: FakeDaytona;
let sources: ReturnType<typeof compileSources>;
let restore: () => void;
let env: Record<string, string>;
beforeAll(async () => {
  scratch = createScratch();
  service = await startFakeDaytona();
  sources = compileSources();
  env = { DAYTONA_API_KEY: service.apiKey, DAYTONA_API_URL: service.apiUrl };
  restore = setEnv(env);
});
afterAll(async () => {
  restore();
  await service.close();
  sources.remove();
  scratch.remove();
});

test("without the package it is a missing dependency with the line that installs it, and nothing is left", async () => {
  const child = startChild(sources.directory, "open-daytona.mjs", []);
  const missing = { code: "missing_dependency", hint: "npm install @daytona/sdk" };
  expect(JSON.parse(await child.line())).toEqual(missing);
  expect([await listSandboxes(), service.requests.filter((line) => line.startsWith("POST"))]).toEqual([[], []]);
  for (const name of ["node_modules", "guest"]) {
    const link = join(sources.directory, name);
    if (!existsSync(link)) symlinkSync(join(root, name), link);
  }
});

test("a process exits at once after teardown, also where a .env names another service", async () => {
  const cwd = join(scratch.path, "project");
  mkdirSync(cwd);
  writeFileSync(join(cwd, ".env"), "DAYTONA_API_URL=http://127.0.0.1:1/api\nDAYTONA_API_KEY=dtn_other\n");
  const child = startChild(sources.directory, "open-daytona.mjs", ["{}", "teardown"], {}, cwd);
  await child.line();
  const began = performance.now();
  expect((await child.ended).code).toBe(0);
  expect(performance.now() - began).toBeLessThan(15_000);
  expect([service.sandboxes.size, await listSandboxes()]).toEqual([0, []]);
});

test("where the SDK takes the machine for a browser a command, files and refusals are the same", async () => {
  const child = startChild(sources.directory, "use-daytona.mjs", [], { VERCEL: "1" });
  expect(JSON.parse(await child.line())).toMatchObject({
    exec: [3, "through", "err\n"],
    kept: ["small", 1 << 20, true],
  });
  // There the SDK does not look at what an upload was answered with.
  service.habits.faults = [{ match: /bulk-upload/, action: { status: 400, body: { errors: ["no"] } } }];
  child.tell("go on");
  expect(JSON.parse(await child.line())).toEqual({ refused: "unavailable", late: null });
  expect((await child.ended).code).toBe(0);
});

test("processes that die at any place of a creation leave nothing that reap does not find", async () => {
  const places = ["create.recorded", "create.registered", "create.started", "create.ready"];
  const ends = places.map(async (place) => {
    const env = { GLOVEBOX_FAILPOINTS: `${place}=kill` };
    return (await startChild(sources.directory, "open-daytona.mjs", [], env).ended).signal;
  });
  expect(await Promise.all(ends)).toEqual(places.map(() => "SIGKILL"));
  // The first one had only written down what it was about to make.
  expect(service.sandboxes.size).toBe(places.length - 1);
  const left = (await listSandboxes()).map(({ id }) => id);
  expect(left).toHaveLength(places.length);
  const { removed, failed } = await reap();
  expect([removed.sort(), failed]).toEqual([left.sort(), []]);
  expect([service.sandboxes.size, await listSandboxes()]).toEqual([0, []]);
});

test("by its label a sandbox is seen and reaped although no ledger knows it, once its process is dead", async () => {
  const child = startChild(sources.directory, "open-daytona.mjs", [], { GLOVEBOX_HOME: join(scratch.path, "other") });
  const { id } = JSON.parse(await child.line()) as { id: string };
  expect(await listSandboxes()).toMatchObject([{ id, backend: "daytona", state: "ready", alive: true }]);
  expect(await reap()).toMatchObject({ removed: [], kept: [id], failed: [] });
  child.kill();
  await child.ended;
  expect(await reap({ dryRun: true })).toMatchObject({ removed: [id] });
  expect(service.sandboxes.size).toBe(1);
  expect(await reap({ backend: "local" })).toMatchObject({ removed: [] });
  expect(await reap()).toMatchObject({ removed: [id], failed: [] });
  expect(service.sandboxes.size).toBe(0);
});

test("what shall be kept is not reaped by its label", async () => {
  const other = { GLOVEBOX_HOME: join(scratch.path, "other") };
  const child = startChild(sources.directory, "open-daytona.mjs", ['{"keep":true}', "teardown"], other);
  const { id } = JSON.parse(await child.line()) as { id: string };
  await child.ended;
  expect(service.entry(`glovebox-${id}`)).toMatchObject({ state: "stopped", autoDeleteInterval: -1 });
  expect(await reap()).toMatchObject({ removed: [], kept: [id] });
  expect(service.sandboxes.size).toBe(1);
});

test("a service that does not answer is a failure of reap, and none of the list", async () => {
  service.habits.faults = [{ match: /GET \/api\/sandbox/, action: { status: 403, body: { message: "no" } }, times: 2 }];
  expect(await listSandboxes()).toEqual([]);
  expect((await reap()).failed).toMatchObject([{ id: "daytona", error: { code: "permission_denied" } }]);
});

test("a list that still has what was deleted is not a failure", async () => {
  const labels = labelsOf({ id: "gone", labels: {} }, false);
  // This pid, as it was used by somebody long ago.
  labels["glovebox-owner"] = (labels["glovebox-owner"] ?? "").replace(/[^/]+(?=\/[^/]*$)/, "1");
  const item = { id: "gone", name: "glovebox-gone", labels, state: "started", toolboxProxyUrl: service.apiUrl };
  const action = { status: 200, body: { items: [item], nextCursor: null } };
  service.habits.faults = [{ match: /GET \/api\/sandbox\?/, action }];
  expect(await reap()).toMatchObject({ removed: ["gone"], failed: [] });
});

test("labels are read as they were written, and nothing else is", () => {
  const entry = { id: "abc", name: "mine", labels: { "app/team": "blue ü" } };
  expect(readLabels(labelsOf(entry, true))).toMatchObject({ ...entry, keep: true, owner: { pid: process.pid } });
  expect(readLabels(labelsOf({ id: "abc", labels: {} }, false))).toEqual({
    ...{ id: "abc", keep: false, owner: expect.objectContaining({ pid: process.pid }) as object },
  });
  for (const labels of [{}, { "glovebox-id": "x" }, { "glovebox-id": "x", "glovebox-owner": "a/b/0/c/d" }]) {
    expect(readLabels(labels as Record<string, string>)).toBeUndefined();
  }
});
