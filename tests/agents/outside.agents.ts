import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NodeSpec } from "../../src/harness.js";
import { ownLoopback, whyNoLowPorts } from "../support/egress/low-ports.js";
import { type Asked, type SecretServer, startSecretServer } from "../support/egress/secret-server.js";
import { type AgentBench, createAgentBench, whyNoAgent } from "./agent-bench.js";

const API = "api.secret.test";
const REGION = "eu-central-1";
/** Hosts whose address no variable replaces: the server stands for them at their usual port. */
const HOSTS = [
  `bedrock-mantle.${REGION}.api.aws`,
  `bedrock-runtime.${REGION}.amazonaws.com`,
  "aiplatform.googleapis.com",
];
const KEYS = {
  CLOUDSDK_AUTH_ACCESS_TOKEN: "ya29.real-token-0123456789",
  AWS_ACCESS_KEY_ID: "AKIA0123456789ABCDEF",
  AWS_SECRET_ACCESS_KEY: "r".repeat(40),
  AWS_BEARER_TOKEN_BEDROCK: "bedrock-real-token-0123456789",
  GOOGLE_API_KEY: "AIza-real-key-0123456789",
  GOOGLE_VERTEX_API_KEY: "AIza-fourth-key-0123456789",
  GOOGLE_CLOUD_API_KEY: "AIza-third-key-0123456789",
  GEMINI_API_KEY: "AIza-other-key-0123456789",
};

let bench: AgentBench;
let server: SecretServer;
beforeAll(async () => {
  bench = await createAgentBench();
  const low = whyNoLowPorts() === undefined ? { address: ownLoopback(), port: 443 } : {};
  server = await startSecretServer(bench.harness.scratch.path, [API, ...HOSTS], low);
});
afterAll(async () => {
  server?.close();
  await bench?.[Symbol.asyncDispose]();
});

interface Case {
  readonly what: string;
  readonly program: string;
  readonly agent: string;
  readonly model: string;
  readonly key: keyof typeof KEYS;
  /** The variables that choose the service; of a service with an address that can't be chosen, it is \`host\`. */
  env(base: string): Record<string, string>;
  readonly host?: string;
  /** The request for an answer of the model. */
  isAsked(request: Asked): boolean;
  readonly headers: Readonly<Record<string, unknown>>;
}

const SIGNED = { authorization: expect.stringContaining(`Credential=${KEYS.AWS_ACCESS_KEY_ID}/`) as string };
const BEARER = { authorization: `Bearer ${KEYS.AWS_BEARER_TOKEN_BEDROCK}` };
const REGIONAL = { env: () => ({ AWS_REGION: REGION }) };
const MANTLE = {
  ...{ program: "codex", agent: "codex", model: "amazon-bedrock/openai.gpt-oss-120b-1:0", host: HOSTS[0] ?? "" },
  ...REGIONAL,
  isAsked: ({ url }: Asked) => url.endsWith("/responses"),
};
const CONVERSE = {
  ...{ model: "amazon-bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0", host: HOSTS[1] ?? "" },
  ...REGIONAL,
  isAsked: ({ url }: Asked) => url.includes("/converse-stream"),
};

const CASES: readonly Case[] = [
  { what: "Codex on Bedrock", key: "AWS_SECRET_ACCESS_KEY", ...MANTLE, headers: SIGNED },
  { what: "Codex on Bedrock, by a token,", key: "AWS_BEARER_TOKEN_BEDROCK", ...MANTLE, headers: BEARER },
  ...["opencode", "pi"].flatMap((agent): Case[] => [
    { what: `${agent} on Bedrock`, key: "AWS_SECRET_ACCESS_KEY", program: agent, agent, ...CONVERSE, headers: SIGNED },
    {
      ...{ what: `${agent} on Bedrock, by a token,`, key: "AWS_BEARER_TOKEN_BEDROCK", program: agent, agent },
      ...CONVERSE,
      headers: BEARER,
    },
  ]),
  {
    ...{ what: "opencode on Vertex AI", program: "opencode", agent: "opencode", model: "google-vertex/gemini-2.5-pro" },
    ...{ key: "GOOGLE_VERTEX_API_KEY", host: "aiplatform.googleapis.com" },
    env: () => ({ GOOGLE_CLOUD_PROJECT: "project", GOOGLE_VERTEX_LOCATION: "global" }),
    isAsked: ({ url }) => url.includes("enerateContent"),
    headers: { "x-goog-api-key": KEYS.GOOGLE_VERTEX_API_KEY },
  },
  {
    ...{ what: "pi on Vertex AI", program: "pi", agent: "pi", model: "google-vertex/gemini-2.5-pro" },
    ...{ key: "GOOGLE_CLOUD_API_KEY", host: "aiplatform.googleapis.com" },
    env: () => ({ GOOGLE_CLOUD_PROJECT: "project", GOOGLE_CLOUD_LOCATION: "global" }),
    isAsked: ({ url }) => url.includes("enerateContent"),
    headers: { "x-goog-api-key": KEYS.GOOGLE_CLOUD_API_KEY },
  },
  {
    ...{
      what: "Claude Code on Vertex AI",
      program: "claude",
      agent: "claude-code",
      model: "claude-sonnet-4-5@20250929",
    },
    key: "CLOUDSDK_AUTH_ACCESS_TOKEN",
    env: (base) => ({
      ...{ CLAUDE_CODE_USE_VERTEX: "1", CLOUD_ML_REGION: "europe-west1", ANTHROPIC_VERTEX_PROJECT_ID: "project" },
      ANTHROPIC_VERTEX_BASE_URL: `${base}/v1`,
    }),
    isAsked: ({ url }) => url.includes("awPredict"),
    headers: { authorization: `Bearer ${KEYS.CLOUDSDK_AUTH_ACCESS_TOKEN}` },
  },
  {
    ...{ what: "Claude Code on Bedrock", program: "claude", agent: "claude-code" },
    model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    key: "AWS_SECRET_ACCESS_KEY",
    env: (base) => ({
      ...{ CLAUDE_CODE_USE_BEDROCK: "1", AWS_REGION: "eu-central-1", ANTHROPIC_BEDROCK_BASE_URL: base },
    }),
    isAsked: ({ url }) => url.includes("/invoke"),
    headers: { authorization: expect.stringContaining(`Credential=${KEYS.AWS_ACCESS_KEY_ID}/`) },
  },
  {
    ...{ what: "Gemini CLI on Vertex AI", program: "gemini", agent: "gemini-cli", model: "gemini-2.5-pro" },
    key: "GOOGLE_API_KEY",
    env: (base) => ({ GOOGLE_GENAI_USE_VERTEXAI: "true", GOOGLE_VERTEX_BASE_URL: base }),
    isAsked: ({ url }) => url.includes("enerateContent"),
    headers: { "x-goog-api-key": KEYS.GOOGLE_API_KEY },
  },
  {
    ...{ what: "Gemini CLI", program: "gemini", agent: "gemini-cli", model: "gemini-2.5-pro" },
    key: "GEMINI_API_KEY",
    env: (base) => ({ GOOGLE_GEMINI_BASE_URL: base }),
    isAsked: ({ url }) => url.includes("enerateContent"),
    headers: { "x-goog-api-key": KEYS.GEMINI_API_KEY },
  },
];

/** The variables of a case, and no others: an agent takes the first that it finds. */
function setKeys(key: keyof typeof KEYS): () => void {
  const names = key === "AWS_SECRET_ACCESS_KEY" ? [key, "AWS_ACCESS_KEY_ID" as const] : [key];
  for (const name of names) process.env[name] = KEYS[name];
  return () => {
    for (const name of names) delete process.env[name];
  };
}

describe("the real program", () => {
  test.for(CASES)("$what uses a key that is not inside", async (each, { skip }) => {
    const reason = whyNoAgent(each.program) ?? (each.host === undefined ? undefined : whyNoLowPorts());
    if (reason !== undefined) return skip(reason);
    const unset = setKeys(each.key);
    const at = `${API}:${server.port}`;
    const before = server.asked.length;
    const stop = new AbortController();
    const { agent, model } = each;
    const node = { id: "ask", kind: "agent", agent, model, prompt: "Say hello.", retry: { max: 0 } };
    const running = bench.harness.run({
      blueprint: { name: "keys", nodes: [node as NodeSpec], sandbox: { env: each.env(`https://${at}`) } },
      network: { allow: [at] },
      sandbox: bench.sandbox,
      limits: { wall: 120_000 },
      keep: "never",
      signal: stop.signal,
    });
    const asked = (): Asked | undefined => server.asked.slice(before).find(each.isAsked);
    // The server says nothing that a model would, so the run is ended once it was asked.
    await Promise.race([running, expect.poll(asked, { timeout: 110_000 }).toBeDefined()]);
    stop.abort();
    const report = await running;
    unset();
    expect(asked(), report.error?.message).toMatchObject({
      host: each.host ?? new URL(`https://${at}`).host,
      headers: each.headers,
    });
    expect(report.secrets).toMatchObject([{ name: each.key, kept: "outside" }]);
  });
});
