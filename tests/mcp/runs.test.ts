import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listRuns } from "../../src/harness.js";
import { createMcpServer, type McpServer, type McpServerOptions } from "../../src/mcp.js";
import { listSandboxes } from "../../src/sandbox.js";
import { connectTo, fieldsOf, type TestClient } from "../support/mcp/client.js";
import { processesWith } from "../support/processes/host-processes.js";
import { createRepository, createScratch, git, type Scratch } from "../support/scratch.js";

const MARKER = `run-of-a-model-${process.pid}`;
const WRITES = {
  ...{ version: 1, name: "writes" },
  description: "writes a file",
  inputs: { word: { type: "string", required: true } },
  nodes: [
    { id: "first", kind: "command", env: { WORD: "{{ inputs.word }}" }, shell: "echo $WORD > made.txt" },
    { id: "second", kind: "command", run: ["cat", "made.txt"] },
  ],
};
const WAITS = {
  version: 1,
  name: "waits",
  nodes: [{ id: "long", kind: "command", shell: `sh -c 'sleep 600; :' ${MARKER}` }],
};

let scratch: Scratch;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
  const folder = join(repo, ".glovebox", "blueprints");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "writes.json"), JSON.stringify(WRITES));
  writeFileSync(join(folder, "waits.json"), JSON.stringify(WAITS));
  git(repo, "add", "-A");
  git(repo, "commit", "--quiet", "-m", "blueprints");
});
afterAll(() => scratch.remove());

const running = (): unknown[] => processesWith(MARKER);

async function serve(more: Partial<NonNullable<McpServerOptions["runs"]>> = {}): Promise<McpServer> {
  return await createMcpServer({
    tools: ["runs"],
    runs: { repo, blueprints: ["writes", "waits"], keep: "never", ...more },
  });
}

async function start(client: TestClient, blueprint: string, inputs?: object): Promise<string> {
  const result = await client.call("run_start", { blueprint, intent: "try it", ...(inputs && { inputs }) });
  expect(fieldsOf(result)).toMatchObject({
    blueprint,
    state: expect.stringMatching(/^(?:running|success)$/) as string,
  });
  return String(fieldsOf(result)["run_id"]);
}

it("starts a run, follows it to its end, and gives its report and its patch", async () => {
  await using server = await serve();
  await using client = await connectTo(server);
  const { tools } = await client.client.listTools();
  expect(tools.map(({ name }) => name).slice(7)).toEqual(["run_start", "run_status", "run_cancel"]);
  expect(tools[7]).toMatchObject({
    description: expect.stringContaining("Blueprints: writes, waits.") as string,
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true },
  });
  const id = await start(client, "writes", { word: "hello" });
  const seen: unknown[] = [];
  await expect
    .poll(async () => {
      const result = await client.call("run_status", { run_id: id, wait_ms: 20_000 });
      seen.push(fieldsOf(result)["state"]);
      return seen.at(-1);
    })
    .toBe("success");
  // It waited for steps, and did not ask again and again.
  expect(seen.length).toBeLessThan(8);
  const over = await client.call("run_status", { run_id: id });
  expect(fieldsOf(over)).toMatchObject({
    nodes: [
      { id: "first", state: "success" },
      { id: "second", state: "success" },
    ],
    report: expect.stringContaining("# success: `writes`") as string,
    patch: expect.stringContaining("+hello") as string,
  });
  expect(over.structuredContent).toEqual(fieldsOf(over));
  expect(await client.text("run_status", { run_id: id })).toMatch(/^run_id mcp-\w+\nstate success\n[\s\S]*\+hello/);
  expect(await client.text("run_status")).toBe(`${id}  writes  success`);
  expect((await client.text("run_cancel", { run_id: id })).startsWith(`run_id ${id}\nstate success`)).toBe(true);
  // No sandbox of the tools was opened for it.
  expect(await listSandboxes()).toEqual([]);
});

it("ends a run that is cancelled, and what it started", async () => {
  await using server = await serve();
  await using client = await connectTo(server);
  const id = await start(client, "waits");
  await expect.poll(running).not.toEqual([]);
  expect(await client.text("run_status", { run_id: id })).toMatch(/\nstate running\nlong: running\n/);
  expect(fieldsOf(await client.call("run_cancel", { run_id: id }))).toMatchObject({ state: "cancelled" });
  expect(running()).toEqual([]);
  expect(fieldsOf(await client.call("run_cancel", { run_id: id }))).toMatchObject({ state: "cancelled" });
});

it("ends the runs of a client that goes away, and leaves their reports", async () => {
  await using server = await serve();
  let id = "";
  {
    await using client = await connectTo(server);
    id = await start(client, "waits");
    await expect.poll(running).not.toEqual([]);
  }
  await expect.poll(running).toEqual([]);
  await expect.poll(async () => (await listRuns()).find(({ runId }) => runId === id)?.state).toBe("cancelled");
});

it("keeps the runs of clients apart", async () => {
  await using server = await serve();
  await using first = await connectTo(server);
  await using second = await connectTo(server);
  const id = await start(first, "waits");
  for (const tool of ["run_status", "run_cancel"])
    expect(await second.failure(tool, { run_id: id })).toMatch(
      /^not_found: There is no run "mcp-\w+" of yours\nhint: /,
    );
  expect(await second.text("run_status")).toBe("there is none");
  expect(await first.text("run_status")).toBe(`${id}  waits  running`);
});

it("refuses what the user does not offer, what is wrong, and too much, before anything is opened", async () => {
  await using server = await serve({ maxRuns: 1 });
  await using client = await connectTo(server);
  const refused = async (input: object): Promise<string> =>
    await client.failure("run_start", { intent: "x", ...input });
  for (const blueprint of ["bug-fix", "./writes.json", join(repo, ".glovebox/blueprints/writes.json")])
    expect(await refused({ blueprint })).toMatch(/^permission_denied: [\s\S]*hint: choose one of writes, waits$/);
  expect(await refused({ blueprint: "writes" })).toMatch(/^invalid_argument: The input word/);
  expect(await refused({ blueprint: "writes", inputs: { word: "a", other: 1 } })).toMatch(/^invalid_argument: .*other/);
  expect(await refused({ blueprint: "writes", inputs: { word: ["a"] } })).toMatch(/^invalid_argument: /);
  expect(await refused({ blueprint: "writes", intent: " ", inputs: { word: "a" } })).toMatch(
    /^invalid_argument: .*intent/,
  );
  expect(await refused({ blueprint: "writes", repo: "/" })).toMatch(/^invalid_argument: .*repo/);
  expect(await client.text("run_status")).toBe("there is none");
  await start(client, "waits");
  expect(await refused({ blueprint: "waits" })).toMatch(/^limit_exceeded: 1 of your runs[\s\S]*hint: wait for one/);
});

it("wants an offer for the group, and the group for an offer", async () => {
  const wrong: McpServerOptions[] = [
    { tools: ["runs"] },
    { runs: { repo } },
    { tools: ["runs"], runs: {} as never },
    { tools: ["runs"], runs: { repo, blueprints: [] } },
    { tools: ["runs"], runs: { repo, maxRuns: 0 } },
  ];
  for (const options of wrong)
    await expect(createMcpServer(options)).rejects.toMatchObject({ code: "invalid_argument" });
  const unknown = createMcpServer({ tools: ["runs"], runs: { repo, blueprints: ["no-such"] } });
  await expect(unknown).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining("writes") as string });
});
