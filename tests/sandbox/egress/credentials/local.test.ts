import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SecretRule } from "../../../../contracts/types.js";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import { tokenInternals } from "../../../../src/sandbox/egress/secrets/credentials.js";
import type { Sandbox } from "../../../../src/sandbox/types.js";
import { isSignedBy, whyNoAwsSdk } from "../../../support/egress/aws-sdk.js";
import { type SecretServer, startSecretServer } from "../../../support/egress/secret-server.js";
import { startTokenServer, type TokenServer } from "../../../support/egress/token-server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const API = "dynamodb.eu-central-1.amazonaws.com";
const KEYS = {
  accessKeyId: "ASIAREALREALREALREAL",
  secretAccessKey: "real/secret+key/real/secret+key/real1234",
  sessionToken: "real-session-token==",
};
const GOOGLE = "ya29.short-google-token";

let scratch: Scratch;
let server: SecretServer;
let tokens: TokenServer;
let sandbox: Sandbox;
let rules: Record<string, SecretRule>;

function place(name: string, content: object): string {
  const path = join(scratch.path, name);
  writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
  return path;
}

beforeAll(async () => {
  scratch = createScratch();
  server = await startSecretServer(scratch.path, [API]);
  const folder = join(scratch.path, "tokens");
  mkdirSync(folder);
  tokens = await startTokenServer(folder, () => ({ access_token: GOOGLE, expires_in: 3599 }));
  tokenInternals.ca = tokens.ca;
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const aws = place("aws.json", {
    ...{ Version: 1, AccessKeyId: KEYS.accessKeyId, SecretAccessKey: KEYS.secretAccessKey },
    SessionToken: KEYS.sessionToken,
  });
  const google = place("google.json", {
    ...{ type: "service_account", client_email: "a@b.iam.gserviceaccount.com", token_uri: tokens.url },
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
  });
  const store = place("login.json", { refresh_token: tokens.login() });
  const hosts = [`${API}:${server.port}`];
  rules = {
    AWS_SECRET_ACCESS_KEY: { hosts, sign: "aws", from: { command: ["cat", aws] } },
    GOOGLE_TOKEN: { hosts, from: { google: { file: google, scopes: ["https://www.googleapis.com/auth/x"] } } },
    LOGIN_TOKEN: { hosts, from: { oauth: { store, tokenUrl: tokens.url } } },
  };
  sandbox = await createLocalSandbox({ network: { allow: hosts }, secrets: rules });
});

afterAll(async () => {
  await sandbox.teardown();
  delete tokenInternals.ca;
  await tokens[Symbol.asyncDispose]();
  server.close();
  scratch.remove();
});

async function run(script: string): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.shell(script.replaceAll("$1", `https://${API}:${server.port}/`));
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
}

test("curl signs for AWS with keys that open nothing, and the real ones sign what is sent", async ({ skip }) => {
  if (whyNoAwsSdk !== undefined) return skip(whyNoAwsSdk);
  const user = '-u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"';
  const shown = await run(
    `curl -sS --aws-sigv4 aws:amz:eu-central-1:dynamodb ${user} -H 'Content-Type: application/json' -d '{"a":1}' "$1a%20b?z=1&a=%C3%A9"`,
  );
  const asked = server.asked.at(-1);
  expect(asked).toMatchObject({ method: "POST", body: '{"a":1}' });
  const headers = Object.entries(asked?.headers ?? {}).map(([name, value]) => [name, String(value)] as const);
  const received = {
    method: asked?.method ?? "",
    url: asked?.url ?? "",
    headers,
    body: Buffer.from(asked?.body ?? ""),
  };
  expect(await isSignedBy(received, KEYS)).toBe(true);
  // The server repeats what it got.
  expect(shown).toContain("AWS4-HMAC-SHA256");
  for (const value of Object.values(KEYS)) expect(shown).not.toContain(value);
});

test("a Google key and a stored login are sent as short tokens", async () => {
  await run('curl -sS -H "Authorization: Bearer $GOOGLE_TOKEN" $1');
  expect(server.asked.at(-1)?.headers.authorization).toBe(`Bearer ${GOOGLE}`);
  const shown = await run('curl -sS -H "Authorization: Bearer $LOGIN_TOKEN" $1');
  const sent = String(server.asked.at(-1)?.headers.authorization).replace("Bearer ", "");
  expect(tokens.isValid(sent)).toBe(true);
  expect(shown).not.toContain(sent);
});

test("commands see placeholders only", async () => {
  const env = await run("env");
  expect(env).toMatch(/^AWS_ACCESS_KEY_ID=AKIAGLOVEBOX\w{8}$/m);
  expect(env).toMatch(/^AWS_SECRET_ACCESS_KEY=glovebox\w{32}$/m);
  for (const value of [...Object.values(KEYS), GOOGLE, "access-", "refresh-"]) expect(env).not.toContain(value);
});

test.each([
  ["the other variable", { env: { AWS_ACCESS_KEY_ID: "x" } }, "AWS_ACCESS_KEY_ID is in secrets and in env"],
  ["the other secret", { secrets: { AWS_ACCESS_KEY_ID: { hosts: [API] } } }, "AWS_ACCESS_KEY_ID is in secrets twice"],
  [
    "another name",
    { secrets: { MY_KEY: { hosts: [API], sign: "aws" as const } } },
    "is for AWS_SECRET_ACCESS_KEY only",
  ],
  ["two sources", { secrets: { X: { hosts: [API], from: { env: "A", oauth: {} } as never } } }, "one of env, file"],
  [
    "a plain endpoint",
    { secrets: { X: { hosts: [API], from: { oauth: { store: "/x", tokenUrl: "http://a.test/" } } } } },
    "an https:// address",
  ],
])("what can't work is refused before anything is made: %s", async (_, more, why) => {
  const { AWS_SECRET_ACCESS_KEY } = rules;
  const secrets = { ...(AWS_SECRET_ACCESS_KEY && { AWS_SECRET_ACCESS_KEY }), ...("secrets" in more && more.secrets) };
  const opened = createLocalSandbox({ network: { allow: [`${API}:${server.port}`, API] }, ...more, secrets });
  await expect(opened).rejects.toMatchObject({ code: "invalid_argument", message: expect.stringContaining(why) });
});
