import { writeFileSync } from "node:fs";
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

  test("that is inside, and that the agent noted in its session, is in none of the files that are saved", async () => {
    const note = "mkdir -p ~/.claude/projects && env > ~/.claude/projects/noted";
    const nodes = [ask(`fake: sh ${note}`, { env: { ANTHROPIC_BASE_URL: `http://${at()}` } })];
    const report = await bench.run({ runId: "noted", ...options(nodes) });
    expect(report).toMatchObject({ status: "success", secrets: [{ name: "ANTHROPIC_API_KEY", kept: "inside" }] });
    const saved = bench.state("noted", "checkpoints/1-ask.sessions.tar");
    expect(saved).toContain("ANTHROPIC_API_KEY=***");
    expect(leaks("noted")).toEqual([]);
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

  test("of one letter, as servers on this machine take it, spoils no file of a run", async () => {
    process.env["ANTHROPIC_API_KEY"] = "x";
    try {
      const nodes = [ask("fake: sh test $ANTHROPIC_API_KEY = x", { secrets: ["ANTHROPIC_API_KEY"] })];
      expect(await bench.run({ runId: "letter", ...options(nodes) })).toMatchObject({ status: "success" });
      expect(JSON.parse(bench.file("letter", "run.json"))).toMatchObject({ blueprint: { document: { nodes } } });
    } finally {
      process.env["ANTHROPIC_API_KEY"] = KEY;
    }
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

describe("a key that several agents of a run use", () => {
  const config = (baseURL: string): string =>
    JSON.stringify({ provider: { own: { options: { baseURL, apiKey: "{env:OPENAI_API_KEY}" } } } });
  const planOf = async (baseURL: string): Promise<Awaited<ReturnType<typeof prepareRun>>["plan"]> => {
    const nodes = [
      { id: "one", kind: "agent", agent: "codex", prompt: "p" },
      {
        id: "two",
        kind: "agent",
        agent: "opencode",
        model: "own/m",
        prompt: "p",
        env: { OPENCODE_CONFIG_CONTENT: config(baseURL) },
      },
    ] as BlueprintSpec["nodes"];
    const made = { blueprint: { name: "keys", nodes }, network: { allow: ["gate.test"] } };
    return (await prepareRun({ ...made, repo: bench.repo, intent: "x", sandboxType: "local" })).plan;
  };
  beforeAll(() => void Object.assign(process.env, { OPENAI_API_KEY: "sk-real-0123456789" }));
  afterAll(() => void delete process.env["OPENAI_API_KEY"]);

  test("goes to the hosts of all of them, and in the way that all have", async () => {
    const { secrets, sandbox } = await planOf("https://gate.test/v1");
    const hosts = ["api.openai.com", "gate.test"];
    // opencode's own service may want it in another header than OpenAI does.
    expect(sandbox.secrets?.["OPENAI_API_KEY"]).toEqual({ hosts, prefix: "sk-" });
    expect(secrets).toContainEqual({ name: "OPENAI_API_KEY", kept: "outside", hosts });
  });

  test("is inside for all of them where the host of one is not known", async () => {
    const { secrets } = await planOf("http://gate.test/v1");
    const why = "the base URL of own is no address with https";
    expect(secrets).toContainEqual({ name: "OPENAI_API_KEY", kept: "inside", why });
  });
});

describe("keys of AWS for an agent on Bedrock", () => {
  const KEYS = { AWS_ACCESS_KEY_ID: "AKIA0123456789ABCDEF", AWS_SECRET_ACCESS_KEY: "r".repeat(40) };
  const SIGNED = '--aws-sigv4 aws:amz:eu-central-1:bedrock --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"';
  beforeAll(() => void Object.assign(process.env, KEYS, { AWS_SESSION_TOKEN: "session-0123456789" }));
  afterAll(() => {
    for (const name of [...Object.keys(KEYS), "AWS_SESSION_TOKEN"]) delete process.env[name];
  });

  const bedrock = (prompt: string, more: object = {}): Omit<HarnessOptions, "repo" | "intent"> => {
    const env = {
      CLAUDE_CODE_USE_BEDROCK: "1",
      AWS_REGION: "eu-central-1",
      ANTHROPIC_BEDROCK_BASE_URL: `https://${at()}`,
    };
    return options([ask(prompt, more)], { env });
  };

  test("sign at the proxy and are never inside", async () => {
    const report = await bench.run({
      runId: "bedrock",
      ...bedrock(`fake: sh env; curl -sS ${SIGNED} -d '{}' "$ANTHROPIC_BEDROCK_BASE_URL/model/m/invoke"`),
    });
    const hosts = [at(), "bedrock.eu-central-1.amazonaws.com"];
    expect(report).toMatchObject({
      status: "success",
      secrets: [{ name: "AWS_SECRET_ACCESS_KEY", kept: "outside", hosts }],
    });
    expect(server.asked.at(-1)).toMatchObject({
      url: "/model/m/invoke",
      headers: {
        authorization: expect.stringContaining("Credential=AKIA0123456789ABCDEF/") as string,
        "x-amz-security-token": "session-0123456789",
      },
    });
    const seen = bench.file("bedrock", "events.jsonl");
    for (const value of [...Object.values(KEYS), "session-0123456789"]) expect(seen).not.toContain(value);
    expect(seen).toContain("AKIAGLOVEBOX");
  });

  test("go inside together where a node names one of them, and the report says so", async () => {
    const report = await bench.run({
      runId: "bedrock-inside",
      ...bedrock(`fake: sh test "$AWS_ACCESS_KEY_ID$AWS_SESSION_TOKEN" = AKIA0123456789ABCDEFsession-0123456789`, {
        secrets: ["AWS_ACCESS_KEY_ID"],
      }),
    });
    expect(report.status).toBe("success");
    expect(report.secrets).toEqual([
      { name: "AWS_SECRET_ACCESS_KEY", kept: "inside", why: "a node names AWS_ACCESS_KEY_ID" },
      { name: "AWS_ACCESS_KEY_ID", kept: "inside", why: "it belongs to AWS_SECRET_ACCESS_KEY" },
      { name: "AWS_SESSION_TOKEN", kept: "inside", why: "it belongs to AWS_SECRET_ACCESS_KEY" },
    ]);
  });
});

describe("a subscription", () => {
  test("whose token is in a private file stays outside, and no variable is needed", async () => {
    const file = join(bench.scratch.path, "token");
    writeFileSync(file, "sk-ant-oat01-0123456789\n", { mode: 0o600 });
    const rule = { hosts: [at()], header: "authorization", prefix: "sk-ant-oat01-", from: { file } };
    const base = options([
      ask('fake: sh curl -sS -H "Authorization: Bearer $CLAUDE_CODE_OAUTH_TOKEN" "$ANTHROPIC_BASE_URL/v1"'),
    ]);
    delete process.env["ANTHROPIC_API_KEY"];
    try {
      const report = await bench.run({
        runId: "subscription",
        ...base,
        sandbox: { ...base.sandbox, secrets: { CLAUDE_CODE_OAUTH_TOKEN: rule } },
      });
      expect(report).toMatchObject({
        status: "success",
        secrets: [{ name: "CLAUDE_CODE_OAUTH_TOKEN", kept: "outside", hosts: [at()] }],
      });
      expect(server.asked.at(-1)?.headers.authorization).toBe("Bearer sk-ant-oat01-0123456789");
      const again = await resumeRun({ runId: "subscription", from: "ask", sandbox: { env: base.sandbox?.env ?? {} } });
      expect(again.status).toBe("success");
    } finally {
      process.env["ANTHROPIC_API_KEY"] = KEY;
    }
  });

  test("of which nothing is set is refused before anything is made", async () => {
    delete process.env["ANTHROPIC_API_KEY"];
    try {
      await expect(bench.run({ runId: "keyless", ...options([ask("fake:")]) })).rejects.toMatchObject({
        code: "unauthenticated",
        message: expect.stringContaining("needs ANTHROPIC_API_KEY or") as string,
      });
      expect(bench.file("keyless", "run.json")).toBe("");
      expect(bench.state("keyless", "run.json")).toBe("");
    } finally {
      process.env["ANTHROPIC_API_KEY"] = KEY;
    }
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

  test("that is a login of a program needs no variable", async () => {
    const login = { hosts: [at()], login: { tokenUrls: [`https://${at()}/token`] } };
    const blueprint = { name: "w", nodes, sandbox: { allow: [at()], secrets: { LOGIN: login } } };
    const { plan } = await prepareRun({ blueprint, repo: bench.repo, intent: "x", sandboxType: "local" });
    expect(plan.secrets).toEqual([{ name: "LOGIN", kept: "outside", hosts: [at()] }]);
  });

  test("that is not set is refused before anything is made", async () => {
    await expect(bench.run({ blueprint: { name: "w", nodes, sandbox: sandbox() ?? {} } })).rejects.toMatchObject({
      code: "unauthenticated",
      message: "The sandbox of this blueprint needs TEST_WEATHER, which is not set",
    });
  });
});
