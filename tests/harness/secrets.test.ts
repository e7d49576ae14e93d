import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { reportSchema } from "../../src/harness/report/report-schema.js";
import { type BlueprintSpec, type HarnessOptions, prepareRun, resumeRun } from "../../src/harness.js";
import { findFaults } from "../../src/util/schema.js";
import { type SecretServer, startSecretServer } from "../support/egress/secret-server.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";
import { withFakeAgents } from "../support/harness/fake-agents.js";
import { filesWith } from "../support/harness/files-with.js";

const API = "api.secret.test";
const KEY = "sk-ant-real-0123456789";

let bench: HarnessBench;
let server: SecretServer;
let fakes: ReturnType<typeof withFakeAgents>;

beforeAll(async () => {
  bench = await createHarnessBench();
  server = await startSecretServer(bench.scratch.path, [API]);
  fakes = withFakeAgents(join(bench.scratch.path, "agents"));
  process.env["ANTHROPIC_API_KEY"] = KEY;
});
afterAll(async () => {
  delete process.env["ANTHROPIC_API_KEY"];
  server.close();
  await bench[Symbol.asyncDispose]();
});

const at = (): string => `${API}:${server.port}`;
const CURL = '-H "x-api-key: $ANTHROPIC_API_KEY" "$ANTHROPIC_BASE_URL/v1/messages"';

function ask(prompt: string, more: object = {}): BlueprintSpec["nodes"][number] {
  return { id: "ask", kind: "agent", agent: "claude-code", prompt, ...more };
}

/** A run whose agent has an API of our own. */
function options(
  nodes: BlueprintSpec["nodes"],
  sandbox: BlueprintSpec["sandbox"] = {},
): Omit<HarnessOptions, "repo" | "intent"> {
  return {
    blueprint: { name: "keys", nodes, sandbox, expectsChanges: false },
    network: { allow: [at()] },
    sandbox: { ...fakes, env: { ...fakes.env, ANTHROPIC_BASE_URL: `https://${at()}` } },
    keep: "never",
  };
}

/** The files of a run that contain the key. */
function leaks(runId: string): string[] {
  return filesWith(KEY, [bench.directoryOf(runId), bench.stateOf(runId)]);
}

describe("the key of an agent", () => {
  test("goes to its API and is never inside; the report says so", async () => {
    const report = await bench.run({ runId: "outside", ...options([ask(`fake: sh curl -sS ${CURL}; env`)]) });
    expect(report).toMatchObject({
      status: "success",
      secrets: [{ name: "ANTHROPIC_API_KEY", kept: "outside", hosts: [at()] }],
    });
    expect(server.asked.at(-1)).toMatchObject({ url: "/v1/messages", headers: { "x-api-key": KEY } });
    expect(leaks("outside")).toEqual([]);
    expect(bench.file("outside", "report.md")).toContain(`ANTHROPIC_API_KEY: never inside, only for ${at()}`);
    expect(findFaults(JSON.parse(bench.file("outside", "report.json")), reportSchema)).toEqual([]);
    expect(JSON.parse(bench.file("outside", "run.json"))).toMatchObject({
      sandbox: { secrets: { ANTHROPIC_API_KEY: { hosts: [at()], header: "x-api-key" } } },
    });
  });

  test("stays outside when the run is resumed", async () => {
    const nodes = [ask(`fake: sh test -e ready; curl -sS ${CURL}`), { id: "stop", kind: "command", shell: "exit 1" }];
    const before = server.asked.length;
    await bench.run({ runId: "resumed", ...options(nodes as BlueprintSpec["nodes"]), keep: "never" });
    const { env = {} } = options([]).sandbox ?? {};
    const report = await resumeRun({ runId: "resumed", from: "ask", sandbox: { env } });
    expect(report.secrets).toEqual([{ name: "ANTHROPIC_API_KEY", kept: "outside", hosts: [at()] }]);
    expect(server.asked.slice(before).map(({ headers }) => headers["x-api-key"])).toEqual([KEY, KEY]);
    expect(leaks("resumed")).toEqual([]);
  });

  test("goes inside where a node names it", async () => {
    const nodes = [
      ask("fake: sh test $ANTHROPIC_API_KEY = sk-ant-real-0123456789", { secrets: ["ANTHROPIC_API_KEY"] }),
    ];
    const report = await bench.run({ runId: "inside", ...options(nodes) });
    expect(report).toMatchObject({
      status: "success",
      secrets: [{ name: "ANTHROPIC_API_KEY", kept: "inside", why: "a node names it" }],
    });
  });

  test.each<[string, () => Partial<HarnessOptions>, string]>([
    ["with the whole network", () => ({ network: "full" }), "the network is full"],
    [
      "for an address without TLS",
      () => ({ env: { ANTHROPIC_BASE_URL: "http://127.0.0.1:1" } }),
      "no address with https",
    ],
    [
      "for a host that is not allowed",
      () => ({ env: { ANTHROPIC_BASE_URL: "https://b.test" } }),
      "does not have b.test:443",
    ],
    ["from another source", () => ({ secretSource: { ANTHROPIC_API_KEY: "another-value" } }), "not in the environment"],
    ["without isolation", () => ({ sandbox: { isolation: "none" }, network: "full" }), "use the network of the host"],
  ])("goes inside %s", async (_, more, why) => {
    const { blueprint } = options([ask("fake:")]);
    const { plan } = await prepareRun({ blueprint, repo: bench.repo, intent: "x", sandboxType: "local", ...more() });
    expect(plan.secrets).toEqual([
      { name: "ANTHROPIC_API_KEY", kept: "inside", why: expect.stringContaining(why) as string },
    ]);
    expect(plan.sandbox.secrets).toBeUndefined();
  });

  test.each([
    ["nothing", {}],
    ["a port of this machine", { network: { allow: ["host-loopback:5432"] } }],
  ])("is for the usual host when the run is allowed %s besides", async (_, more) => {
    const { blueprint } = options([ask("fake:")]);
    const { plan } = await prepareRun({ blueprint, repo: bench.repo, intent: "x", sandboxType: "local", ...more });
    const rule = { hosts: ["api.anthropic.com"], header: "x-api-key", prefix: "sk-ant-" };
    expect(plan.sandbox.secrets).toEqual({ ANTHROPIC_API_KEY: rule });
  });
});

describe("a secret of the blueprint's sandbox", () => {
  const nodes: BlueprintSpec["nodes"] = [
    { id: "send", kind: "command", shell: `curl -sS -H "Authorization: $TEST_WEATHER" https://${API}:$PORT/` },
  ];
  const sandbox = (): BlueprintSpec["sandbox"] => ({
    allow: [at()],
    env: { PORT: String(server.port) },
    secrets: { TEST_WEATHER: { hosts: [at()] } },
  });

  test("is put in for every node", async () => {
    process.env["TEST_WEATHER"] = "weather-0123456789";
    const report = await bench.run({
      blueprint: { name: "w", nodes, sandbox: sandbox() ?? {}, expectsChanges: false },
    });
    delete process.env["TEST_WEATHER"];
    expect(report).toMatchObject({ status: "success", secrets: [{ name: "TEST_WEATHER", kept: "outside" }] });
    expect(server.asked.at(-1)?.headers.authorization).toBe("weather-0123456789");
    expect(report.nodes[0]?.output).not.toContain("weather-0123456789");
  });

  test("that is not set is refused before anything is made", async () => {
    await expect(bench.run({ blueprint: { name: "w", nodes, sandbox: sandbox() ?? {} } })).rejects.toMatchObject({
      code: "unauthenticated",
      message: "The sandbox of this blueprint needs TEST_WEATHER, which is not set",
    });
  });
});
