import { afterAll, beforeAll, expect, test } from "vitest";
import { buildSnapshot } from "../../src/sandbox/backends/daytona/prepared-snapshot.js";
import { createDaytonaSandbox } from "../../src/sandbox/backends/daytona.js";
import { probeBackend } from "../../src/sandbox.js";
import { type FakeDaytona, startFakeDaytona } from "../fakes/daytona/server.js";
import { type Bench, createBench } from "../support/cli.js";
import { setEnv } from "../support/daytona/service.js";

let bench: Bench;
let service: FakeDaytona;
let env: Record<string, string>;
let restore: () => void;
beforeAll(async () => {
  bench = createBench();
  service = await startFakeDaytona();
  env = { DAYTONA_API_KEY: service.apiKey, DAYTONA_API_URL: service.apiUrl };
  restore = setEnv(env);
});
afterAll(async () => {
  restore();
  await service.close();
  bench.remove();
});

test("the prepared snapshot is built once, also after a build that failed, and a sandbox is made of it by its name", async () => {
  service.habits.failingBuild = /RUN npm install.*/;
  const reason = { code: "unavailable", message: expect.stringContaining("build failed at RUN npm install") };
  await expect(buildSnapshot("harness-node22")).rejects.toMatchObject(reason);
  const daytona = { apiUrl: service.apiUrl, apiKey: service.apiKey, snapshot: "harness-node22" };
  await expect(createDaytonaSandbox({ daytona })).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining("is build_failed"),
  });
  Object.assign(service.habits, { failingBuild: undefined, buildMs: 300 });
  const build = (): ReturnType<Bench["run"]> =>
    bench.run(["prepare", "harness-node22", "--backend", "daytona"], { env });
  const built = await build();
  expect([built.code, built.stdout]).toEqual([0, "built harness-node22\n"]);
  // What the service says meanwhile is read to its end.
  expect(service.requests.filter((line) => line.startsWith("GET /build-logs/"))).toHaveLength(1);
  expect(await build()).toMatchObject({ code: 0, stdout: "harness-node22 exists already\n" });

  const asked: Record<string, unknown> = service.snapshots.get("harness-node22")?.asked ?? {};
  expect(asked).toMatchObject({ cpu: 2, memory: 4, disk: 16 });
  const { dockerfileContent } = asked["buildInfo"] as { dockerfileContent: string };
  const parts = ["setup_22.x", "pnpm", "claude-code", "@openai/codex", "install -y gh"];
  for (const part of parts) expect(dockerfileContent).toContain(part);

  await using sandbox = await createDaytonaSandbox({ daytona });
  const entry = service.entry(`glovebox-${sandbox.id}`);
  expect([entry.asked["snapshot"], entry.size]).toEqual(["harness-node22", { cpu: 2, memory: 4, disk: 16 }]);
  expect((await sandbox.exec({ argv: ["echo", "ready"] })).stdout).toBe("ready\n");
});

test("one that sleeps is woken, and one that somebody else builds is left to them", async () => {
  const found = service.snapshots.get("harness-node22");
  if (found === undefined) throw new Error("it was not built");
  found.state = "inactive";
  expect([await buildSnapshot("harness-node22"), found.state]).toEqual([false, "active"]);
  found.state = "building";
  await expect(buildSnapshot("harness-node22")).rejects.toMatchObject({ code: "conflict" });
});

test("a snapshot without a recipe, a backend that prepares nothing and a missing key are told apart", async () => {
  const unknown = await bench.run(["prepare", "harness-node99", "--backend", "daytona"], { env });
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("known: harness-node22")]);
  expect((await bench.run(["prepare", "harness-node22", "--backend", "local"], { env })).code).toBe(2);
  const without = await bench.run(["prepare", "harness-node22", "--backend", "daytona"]);
  expect([without.code, without.stderr]).toEqual([1, expect.stringContaining("Daytona API key required")]);
});

test("the doctor says whether the service lets us in", async () => {
  const account = async (): Promise<unknown> => (await probeBackend("daytona")).find(({ name }) => name === "account");
  expect(await account()).toMatchObject({ status: "ok", detail: `${service.apiUrl} accepts the key` });
  const back = setEnv({ DAYTONA_API_KEY: "dtn_wrong_wrong" });
  const wrong = await account().finally(back);
  expect(wrong).toMatchObject({ status: "missing", detail: expect.stringContaining("Invalid credentials") });
  expect(JSON.stringify(wrong)).not.toContain("dtn_wrong_wrong");
});
