import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { accessOf } from "../../../src/harness/agents.js";
import { defineBlueprint, type NodeSpec, needsOf, resolveSecrets } from "../../../src/harness.js";
import { driverNamed } from "../../support/harness/replay-agent.js";
import { createScratch } from "../../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());

function of(node: object, sandbox: object = {}): ReturnType<typeof defineBlueprint> {
  return defineBlueprint({
    name: "x",
    sandbox,
    nodes: [{ kind: "agent", id: "work", prompt: "p", ...node } as NodeSpec],
  });
}

const BEDROCK = { env: { CLAUDE_CODE_USE_BEDROCK: "1", AWS_REGION: "eu-central-1" } };
const AWS = { AWS_ACCESS_KEY_ID: "AKIA0123456789ABCDEF", AWS_SECRET_ACCESS_KEY: "s".repeat(40) };
const HOST = "bedrock-runtime.eu-central-1.amazonaws.com";

describe("the service that a node chooses decides about hosts and keys:", () => {
  test.each([
    [
      "Claude Code on Bedrock",
      { ...BEDROCK },
      [HOST, "bedrock.eu-central-1.amazonaws.com"],
      "AWS_BEARER_TOKEN_BEDROCK|AWS_SECRET_ACCESS_KEY",
    ],
    [
      "Claude Code on Vertex AI",
      { env: { CLAUDE_CODE_USE_VERTEX: "true", CLOUD_ML_REGION: "europe-west1" } },
      ["europe-west1-aiplatform.googleapis.com", "aiplatform.googleapis.com"],
      "CLOUDSDK_AUTH_ACCESS_TOKEN",
    ],
    [
      "Gemini CLI on Vertex AI",
      { agent: "gemini-cli", env: { GOOGLE_GENAI_USE_VERTEXAI: "true", GOOGLE_CLOUD_LOCATION: "us" } },
      ["aiplatform.us.rep.googleapis.com", "aiplatform.googleapis.com"],
      "GOOGLE_API_KEY",
    ],
    [
      "Pi on Bedrock",
      { agent: "pi", model: "amazon-bedrock/claude", env: { AWS_REGION: "cn-north-1" } },
      ["bedrock-runtime.cn-north-1.amazonaws.com.cn", "bedrock.cn-north-1.amazonaws.com.cn"],
      "AWS_BEARER_TOKEN_BEDROCK|AWS_SECRET_ACCESS_KEY",
    ],
    [
      "Codex on Bedrock",
      { agent: "codex", model: "amazon-bedrock/openai.gpt-oss-120b-1:0", env: { AWS_REGION: "eu-central-1" } },
      ["bedrock-mantle.eu-central-1.api.aws"],
      "AWS_BEARER_TOKEN_BEDROCK|AWS_SECRET_ACCESS_KEY",
    ],
    [
      "Codex with a subscription that stays outside",
      { agent: "codex", env: { CODEX_CHATGPT_ACCOUNT: "account-1" } },
      ["chatgpt.com"],
      "CODEX_CHATGPT_TOKEN",
    ],
    [
      "Pi on Vertex AI",
      { agent: "pi", model: "google-vertex/gemini-2.5-pro", env: { GOOGLE_CLOUD_LOCATION: "europe-west1" } },
      ["europe-west1-aiplatform.googleapis.com", "aiplatform.googleapis.com"],
      "GOOGLE_CLOUD_API_KEY",
    ],
    [
      "opencode on Vertex AI",
      { agent: "opencode", model: "google-vertex/gemini" },
      ["aiplatform.googleapis.com"],
      "GOOGLE_VERTEX_API_KEY",
    ],
    [
      "a switch that is off",
      { env: { CLAUDE_CODE_USE_BEDROCK: "0" } },
      ["api.anthropic.com"],
      "ANTHROPIC_API_KEY|ANTHROPIC_AUTH_TOKEN|CLAUDE_CODE_OAUTH_TOKEN",
    ],
  ])("%s", (_, node, hosts, names) => {
    const { network, secrets } = needsOf(of(node));
    expect(network).toEqual({ allow: hosts.toSorted() });
    expect(secrets.map((need) => need.names.join("|"))).toEqual([names]);
  });

  test("also in the sandbox, in the run, and of a repair", () => {
    const choice = BEDROCK.env;
    for (const [made, env] of [
      [of({}, { env: choice }), {}],
      [of({}), choice],
    ] as const) {
      expect(needsOf(made, { env }).network).toMatchObject({ allow: expect.arrayContaining([HOST]) as string[] });
    }
    const gate = defineBlueprint({
      name: "x",
      nodes: [{ kind: "gate", id: "g", checks: [{ run: ["true"] }], onFail: { env: choice } }],
    });
    expect(needsOf(gate).network).toMatchObject({ allow: expect.arrayContaining([HOST]) as string[] });
    // What is made while the run goes on chooses nothing.
    const late = of({ env: { ...choice, AWS_REGION: "{{ branch }}" } });
    expect(JSON.stringify(needsOf(late).network)).not.toContain("{{");
  });
});

describe("a model of a cloud's service", () => {
  const refusal = (node: object): unknown => {
    try {
      return needsOf(of(node));
    } catch (error) {
      const { code, message, hint } = error as { code: string; message: string; hint: string };
      return { code, message, hint };
    }
  };

  test.each([
    ["codex", "google-vertex/gemini-2.5-pro", "Vertex AI", "claude-code, gemini-cli, opencode, pi"],
    ["gemini-cli", "amazon-bedrock/claude", "Bedrock", "claude-code, codex, opencode, pi"],
    ["copilot", "google-vertex-anthropic/claude", "Vertex AI", "claude-code, gemini-cli, opencode, pi"],
  ])("is refused for %s, which does not reach it", (agent, model, service, others) => {
    expect(refusal({ agent, model })).toEqual({
      code: "unsupported",
      message: `${agent} does not reach ${service}, which the model ${model} of node work is from`,
      hint: `take an agent that does: ${others}`,
    });
  });

  test("is refused for an agent that chooses it by a variable", () => {
    expect(refusal({ model: "amazon-bedrock/claude" })).toEqual({
      code: "invalid_argument",
      message: "claude-code does not choose Bedrock by the model of node work",
      hint: "choose it by the variable CLAUDE_CODE_USE_BEDROCK, and name the model as Bedrock does",
    });
  });

  test("is for the program to judge where that is the user's own", () => {
    const acp = { agent: "acp", command: ["opencode", "acp"], model: "amazon-bedrock/claude" };
    expect(refusal(acp)).toMatchObject({ network: "none" });
  });
});

describe("opencode's keys go", () => {
  const keyOf = (config: string, setting: object = {}): unknown =>
    accessOf(driverNamed("opencode"), { env: { OPENCODE_CONFIG_CONTENT: config }, ...setting }).keys?.[
      "OPENAI_API_KEY"
    ];
  const GATEWAY = JSON.stringify({
    provider: { own: { options: { baseURL: "https://gate.test:8443/v1", apiKey: "{env:OPENAI_API_KEY}" } } },
  });

  test("to the usual host, and to those of declared configurations", () => {
    const usual = { host: "api.openai.com", otherHosts: [], header: "authorization" };
    expect(keyOf("{}")).toMatchObject(usual);
    expect(keyOf(GATEWAY)).toMatchObject({ host: "api.openai.com", otherHosts: ["gate.test:8443"] });
    expect(keyOf(GATEWAY)).not.toHaveProperty("header");
    expect(keyOf(GATEWAY, { model: "own/m" })).toMatchObject({ host: "gate.test:8443", otherHosts: [] });
    const jsonc = '{ // a gateway\n "provider": { "openai": { "options": { "baseURL": "https://gate.test/v1", } } } }';
    const home = { ".config/opencode/opencode.jsonc": jsonc };
    expect(keyOf("{}", { home })).toMatchObject({ host: "gate.test", otherHosts: [], header: "authorization" });
  });

  test("inside where the host is not known", () => {
    expect(keyOf("{")).toEqual({ unknown: "OPENCODE_CONFIG_CONTENT can't be read" });
    expect(keyOf(GATEWAY.replace("https", "http"))).toEqual({
      unknown: "the base URL of own is no address with https",
    });
    expect(keyOf("{}", { env: { OPENCODE_CONFIG: "/x.json" } })).toMatchObject({
      unknown: expect.stringContaining("OPENCODE_CONFIG") as string,
    });
  });
});

describe("keys of AWS", () => {
  const needs = needsOf(of(BEDROCK));

  test("are a pair, with a session token where there is one", () => {
    expect(resolveSecrets(needs, AWS)).toEqual(AWS);
    const session = { ...AWS, AWS_SESSION_TOKEN: "t", OTHER: "x" };
    expect(resolveSecrets(needs, session)).toEqual({ ...AWS, AWS_SESSION_TOKEN: "t" });
    expect(resolveSecrets(needs, { AWS_BEARER_TOKEN_BEDROCK: "b", AWS_ACCESS_KEY_ID: "a" })).toEqual({
      AWS_BEARER_TOKEN_BEDROCK: "b",
    });
  });

  test("of which a half is missing are refused by its name", () => {
    expect(() => resolveSecrets(needs, { AWS_SECRET_ACCESS_KEY: "s" })).toThrow(
      expect.objectContaining({
        code: "unauthenticated",
        message: "Node work needs AWS_ACCESS_KEY_ID, beside AWS_SECRET_ACCESS_KEY, which is not set",
      }),
    );
  });

  test("that the sandbox fetches itself need no variables", () => {
    expect(resolveSecrets(needs, {}, ["AWS_SECRET_ACCESS_KEY"])).toEqual({});
    expect(() => resolveSecrets(needs, {}, ["ANOTHER"])).toThrow("needs AWS_BEARER_TOKEN_BEDROCK or AWS_SECRET");
  });
});

describe("a login that is copied in", () => {
  test("takes the place of the variables, and brings its hosts", () => {
    const home = { ".codex/auth.json": { file: "~/.codex/auth.json" } };
    const { network, secrets } = needsOf(of({ agent: "codex" }, { home }));
    expect(network).toEqual({ allow: ["api.openai.com", "auth.openai.com", "chatgpt.com"] });
    expect(secrets).toEqual([]);
  });

  test("of another agent does not", () => {
    const home = { ".codex/auth.json": { file: "~/.codex/auth.json" } };
    expect(needsOf(of({}, { home })).secrets).toHaveLength(1);
  });

  test("is offered where the variables are missing", () => {
    expect(() => resolveSecrets(needsOf(of({ agent: "codex" })), {})).toThrow(
      expect.objectContaining({ hint: expect.stringContaining("sandbox.home: ~/.codex/auth.json") as string }),
    );
  });
});

test("an unknown agent is refused with the nearest name, or with all of them", () => {
  expect(() => needsOf(of({ agent: "cluade-code" }))).toThrow(
    expect.objectContaining({ hint: "did you mean claude-code?" }),
  );
  expect(() => needsOf(of({}), { agent: "gemni-cli" })).toThrow(
    expect.objectContaining({ hint: "did you mean gemini-cli?" }),
  );
  expect(() => needsOf(of({ agent: "zzz" }))).toThrow(
    expect.objectContaining({ hint: expect.stringContaining("claude-code, codex, copilot") as string }),
  );
});

describe("how a program is started", () => {
  /** What the program prints that a driver starts, with these variables. */
  const printed = (agent: string, script: string, given: { chosen?: object; env: Record<string, string> }): string => {
    const { argv } = driverNamed(agent).command({ prompt: "p", env: { ...given.chosen } });
    const programs: Record<string, string> = { codex: "codex", "gemini-cli": "gemini" };
    writeFileSync(join(scratch.path, programs[agent] ?? "claude"), `#!/bin/sh\n${script}\n`, {
      mode: 0o755,
    });
    const [program = "", ...args] = argv;
    return execFileSync(program, args, {
      encoding: "utf8",
      env: { PATH: `${scratch.path}:/usr/bin:/bin`, ...given.env },
    });
  };

  test("Claude Code on Vertex AI gets an access token as a header, beside those of the user, and looks for no login", () => {
    const chosen = { CLAUDE_CODE_USE_VERTEX: "1" };
    const script = 'printf "%s|%s" "$CLAUDE_CODE_SKIP_VERTEX_AUTH" "$ANTHROPIC_CUSTOM_HEADERS"';
    const token = { CLOUDSDK_AUTH_ACCESS_TOKEN: "ya29" };
    const run = (env: Record<string, string>): string => printed("claude-code", script, { chosen, env });
    expect(run(token)).toBe("1|Authorization: Bearer ya29");
    expect(run({ ...token, ANTHROPIC_CUSTOM_HEADERS: "X-Own: 1" })).toBe("1|X-Own: 1\nAuthorization: Bearer ya29");
    expect(run({})).toBe("|");
  });

  test("Codex gets the key under its own name, and no empty one, which would hide its login", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell reads it
    const script = 'printf "%s" "${CODEX_API_KEY-none}"';
    expect(printed("codex", script, { env: { OPENAI_API_KEY: "sk-o" } })).toBe("sk-o");
    expect(printed("codex", script, { env: { OPENAI_API_KEY: "sk-o", CODEX_API_KEY: "sk-c" } })).toBe("sk-c");
    expect(printed("codex", script, { env: {} })).toBe("none");
  });

  test("Gemini CLI is told to use a copied login, unless there is a key", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell reads it
    const script = 'printf "%s" "${GOOGLE_GENAI_USE_GCA-none}"';
    const HOME = join(scratch.path, "home");
    expect(printed("gemini-cli", script, { env: { HOME } })).toBe("none");
    mkdirSync(join(HOME, ".gemini"), { recursive: true });
    writeFileSync(join(HOME, ".gemini", "oauth_creds.json"), "{}");
    expect(printed("gemini-cli", script, { env: { HOME } })).toBe("true");
    expect(printed("gemini-cli", script, { env: { HOME, GEMINI_API_KEY: "k" } })).toBe("none");
  });

  test("Codex gets the file of a login whose token is a placeholder, and no refresh token", () => {
    const env = { CODEX_CHATGPT_TOKEN: "placeholder-1", CODEX_HOME: join(scratch.path, "home of codex") };
    const chosen = { CODEX_CHATGPT_ACCOUNT: "account-'1" };
    const printedFile = printed("codex", 'stat -c %a "$CODEX_HOME/auth.json"; cat "$CODEX_HOME/auth.json"', {
      chosen,
      env,
    });
    const [mode, text = ""] = printedFile.split("\n");
    expect(mode).toBe("600");
    const { tokens, ...rest } = JSON.parse(text) as { tokens: Record<string, string> };
    expect(rest).toEqual({ auth_mode: "chatgpt", last_refresh: "2099-01-01T00:00:00Z" });
    const { id_token = "", ...others } = tokens;
    expect(others).toEqual({ access_token: "placeholder-1", refresh_token: "", account_id: "account-'1" });
    const [, claims = ""] = id_token.split(".");
    expect(JSON.parse(Buffer.from(claims, "base64url").toString())).toEqual({
      "https://api.openai.com/auth": { chatgpt_account_id: "account-'1" },
    });
  });
});
