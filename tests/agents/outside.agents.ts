import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NodeSpec } from "../../src/harness.js";
import { type Asked, type SecretServer, startSecretServer } from "../support/egress/secret-server.js";
import { createHarnessBench, type HarnessBench } from "../support/harness/bench.js";

const INSTALLED = fileURLToPath(new URL("./programs/node_modules", import.meta.url));
const FILES: Readonly<Record<string, string>> = {
  claude: join(INSTALLED, "@anthropic-ai", "claude-code", "bin", "claude.exe"),
  gemini: join(INSTALLED, "@google", "gemini-cli", "bundle", "gemini.js"),
};
const API = "api.secret.test";
const KEYS = {
  CLOUDSDK_AUTH_ACCESS_TOKEN: "ya29.real-token-0123456789",
  AWS_ACCESS_KEY_ID: "AKIA0123456789ABCDEF",
  AWS_SECRET_ACCESS_KEY: "r".repeat(40),
  GOOGLE_API_KEY: "AIza-real-key-0123456789",
  GEMINI_API_KEY: "AIza-other-key-0123456789",
};

let bench: HarnessBench;
let server: SecretServer;
let bin: string;
beforeAll(async () => {
  bench = await createHarnessBench();
  server = await startSecretServer(bench.scratch.path, [API]);
  bin = join(bench.scratch.path, "bin");
  mkdirSync(bin);
  for (const [name, file] of Object.entries(FILES)) symlinkSync(file, join(bin, name));
  Object.assign(process.env, KEYS);
});
afterAll(async () => {
  for (const name of Object.keys(KEYS)) delete process.env[name];
  server?.close();
  await bench?.[Symbol.asyncDispose]();
});

interface Case {
  readonly what: string;
  readonly program: string;
  readonly agent: string;
  readonly model: string;
  readonly key: keyof typeof KEYS;
  env(base: string): Record<string, string>;
  /** The request for an answer of the model. */
  isAsked(request: Asked): boolean;
  readonly headers: Readonly<Record<string, unknown>>;
}

const CASES: readonly Case[] = [
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

describe("the real program", () => {
  test.for(CASES)("$what uses a key that is not inside", async (each, { skip }) => {
    if (!existsSync(FILES[each.program] ?? ""))
      skip("its package is not installed: npm ci --prefix tests/agents/programs");
    const at = `${API}:${server.port}`;
    const before = server.asked.length;
    const stop = new AbortController();
    const node = {
      id: "ask",
      kind: "agent",
      agent: each.agent,
      model: each.model,
      prompt: "Say hello.",
      retry: { max: 0 },
    };
    const running = bench.run({
      blueprint: { name: "keys", nodes: [node as NodeSpec], sandbox: { env: each.env(`https://${at}`) } },
      network: { allow: [at] },
      sandbox: {
        mounts: [bin, dirname(INSTALLED), dirname(process.execPath)].map((source) => ({ source })),
        env: { PATH: `${bin}:${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin` },
      },
      limits: { wall: 120_000 },
      keep: "never",
      signal: stop.signal,
    });
    const asked = (): Asked | undefined => server.asked.slice(before).find(each.isAsked);
    // The server says nothing that a model would, so the run is ended once it was asked.
    await Promise.race([running, expect.poll(asked, { timeout: 110_000 }).toBeDefined()]);
    stop.abort();
    const report = await running;
    expect(asked()?.headers).toMatchObject(each.headers);
    expect(report.secrets).toMatchObject([{ name: each.key, kept: "outside" }]);
  });
});
