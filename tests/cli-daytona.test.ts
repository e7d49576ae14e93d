import { afterAll, beforeAll, expect, test } from "vitest";
import { type FakeDaytona, startFakeDaytona } from "./fakes/daytona-server.js";
import { type Bench, createBench } from "./support/cli.js";

let bench: Bench;
let service: FakeDaytona;
let env: Record<string, string>;
beforeAll(async () => {
  bench = createBench();
  service = await startFakeDaytona();
  env = { DAYTONA_API_KEY: service.apiKey, DAYTONA_API_URL: service.apiUrl };
});
afterAll(async () => {
  await service.close();
  bench.remove();
});

test("the prepared snapshot is built once, and used by its name", async () => {
  const line = ["daytona", "snapshot", "harness-node22"];
  expect(await bench.run(line, { env })).toMatchObject({ code: 0, stdout: "built harness-node22\n" });
  expect(await bench.run(line, { env })).toMatchObject({ code: 0, stdout: "harness-node22 is already there\n" });
  const asked: Record<string, unknown> = service.snapshots.get("harness-node22")?.asked ?? {};
  expect(asked).toMatchObject({ cpu: 2, memory: 4, disk: 16 });
  const { dockerfileContent } = asked["buildInfo"] as { dockerfileContent: string };
  for (const part of ["setup_22.x", "pnpm", "claude-code", "install -y gh"]) expect(dockerfileContent).toContain(part);
});

test("a snapshot without a recipe, another word and a missing key are told apart", async () => {
  const unknown = await bench.run(["daytona", "snapshot", "harness-node99"], { env });
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("known: harness-node22")]);
  expect((await bench.run(["daytona", "build", "harness-node22"], { env })).code).toBe(2);
  const without = await bench.run(["daytona", "snapshot", "harness-node22"]);
  expect([without.code, without.stderr]).toEqual([1, expect.stringContaining("Daytona API key required")]);
});

test("the doctor says whether the service lets us in", async () => {
  const { stdout } = await bench.run(["doctor"], { env });
  expect(stdout).toMatch(/ok +account +\S+ accepts the key/);
  const wrong = await bench.run(["doctor"], { env: { ...env, DAYTONA_API_KEY: "dtn_wrong_wrong" } });
  expect(wrong.stdout).toMatch(/missing +account .*Invalid credentials/);
  expect(wrong.stdout).not.toContain("dtn_wrong_wrong");
});
