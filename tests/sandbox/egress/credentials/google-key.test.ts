import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fetchGoogleToken, tokenInternals } from "../../../../src/sandbox/egress/secrets/credentials.js";
import { startTokenServer, type TokenServer } from "../../../support/egress/token-server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const other = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = (key: typeof privateKey): string => key.export({ type: "pkcs8", format: "pem" }).toString();
const ACCOUNT = "agent@project.iam.gserviceaccount.com";
const SCOPE = "https://www.googleapis.com/auth/devstorage.read_only";

const DIRECT = { upstreamFor: () => undefined, ca: undefined };
let scratch: Scratch;
let server: TokenServer;

/** What Google does: it knows the public key of the account. */
function exchange(form: URLSearchParams): object | undefined {
  const [header = "", claims = "", signature = ""] = (form.get("assertion") ?? "").split(".");
  const isSigned = verify(
    "RSA-SHA256",
    Buffer.from(`${header}.${claims}`),
    createPublicKey(publicKey.export({ type: "spki", format: "pem" })),
    Buffer.from(signature, "base64url"),
  );
  const { iss, scope, aud, iat, exp } = JSON.parse(Buffer.from(claims, "base64url").toString());
  const now = Date.now() / 1000;
  const isFresh = iat <= now && exp > now && exp - iat <= 3600;
  const isRight = isSigned && isFresh && iss === ACCOUNT && scope === SCOPE && aud === server.url;
  return isRight ? { access_token: "ya29.short-token", expires_in: 3599, token_type: "Bearer" } : undefined;
}

beforeAll(async () => {
  scratch = createScratch();
  server = await startTokenServer(scratch.path, exchange);
  tokenInternals.ca = server.ca;
  tokenInternals.timeout = 2_000;
});

afterAll(async () => {
  delete tokenInternals.ca;
  delete tokenInternals.timeout;
  await server[Symbol.asyncDispose]();
  scratch.remove();
});

function keyFile(changes: object = {}): string {
  const key = { type: "service_account", client_email: ACCOUNT, private_key: pem(privateKey), private_key_id: "1" };
  return JSON.stringify({ ...key, token_uri: server.url, ...changes });
}

test("a service key becomes a short token, and only what it signed leaves this machine", async () => {
  const before = Date.now();
  const { value, expiresAt } = await fetchGoogleToken("GOOGLE", keyFile(), [SCOPE], DIRECT);
  expect(value).toBe("ya29.short-token");
  expect(expiresAt).toBeGreaterThanOrEqual(before + 3599_000);
  const sent = server.forms.at(-1);
  expect(sent?.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
  expect(sent?.toString()).not.toContain("PRIVATE");
});

test("a login of a person becomes a short token, too", async () => {
  const file = { type: "authorized_user", client_id: "id-id-id-id", client_secret: "secret-secret" };
  const text = JSON.stringify({ ...file, refresh_token: server.login(), token_uri: server.url });
  const { value } = await fetchGoogleToken("GOOGLE", text, [], DIRECT);
  expect(server.isValid(value)).toBe(true);
});

test.each([
  ["not JSON", () => `{"private_key": "${pem(privateKey)}`, "it is not JSON"],
  ["null", () => "null", "it is not JSON"],
  ["another type", () => keyFile({ type: "external_account" }), "its type is neither"],
  ["no account", () => keyFile({ client_email: undefined }), "no client_email"],
  ["no key", () => keyFile({ private_key: undefined }), "its private_key is not an RSA key"],
  ["a torn key", () => keyFile({ private_key: pem(privateKey).slice(0, 500) }), "its private_key is not an RSA key"],
  [
    "the key of another",
    () => keyFile({ private_key: pem(other.privateKey) }),
    "refused to issue a token: 400 invalid_grant",
  ],
  ["a person without a token", () => keyFile({ type: "authorized_user" }), "no client_id or client_secret"],
])("a malformed key is refused by the name of its secret: %s", async (_, make, why) => {
  const asked = fetchGoogleToken("MY_GOOGLE", make(), [SCOPE], DIRECT);
  await expect(asked).rejects.toMatchObject({ code: "unauthenticated", message: expect.stringContaining(why) });
  await expect(asked).rejects.toThrow("MY_GOOGLE");
  await expect(asked).rejects.not.toThrow(/PRIVATE|free text/);
});

test.each(["http://localhost/token", "https://me:pass@localhost/token", "https://localhost/#a", "token", ""])(
  "a token endpoint that is not plain https is refused: %s",
  async (token_uri) => {
    const asked = fetchGoogleToken("GOOGLE", keyFile({ token_uri }), [SCOPE], DIRECT);
    await expect(asked).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(asked).rejects.not.toThrow("pass");
  },
);

test.each([
  ["hangs", "did not answer in 2000 ms"],
  ["breaks", "can't be reached (ECONNRESET)"],
  ["fails", "answered with status 500"],
  ["moves", "answered with status 307"],
  ["html", "sent no access token"],
  ["floods", "sent more than a token"],
  ["mac", "not a bearer's"],
  ["expired", "has expired"],
])("an endpoint that issues none is unavailable, and its answer is not shown: %s", async (path, why) => {
  const before = server.forms.length;
  const asked = fetchGoogleToken("GOOGLE", keyFile({ token_uri: server.url.replace("token", path) }), [SCOPE], DIRECT);
  await expect(asked).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining(why) });
  await expect(asked).rejects.not.toThrow("leaked");
  expect(server.forms.length).toBe(before + 1);
});

test.each([undefined, "0"])("an endpoint whose certificate nobody knows gets nothing (%s)", async (variable) => {
  const { ca } = tokenInternals;
  delete tokenInternals.ca;
  if (variable !== undefined) process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = variable;
  const before = server.forms.length;
  try {
    await expect(fetchGoogleToken("GOOGLE", keyFile(), [SCOPE], DIRECT)).rejects.toThrow("DEPTH_ZERO_SELF_SIGNED_CERT");
  } finally {
    if (ca !== undefined) tokenInternals.ca = ca;
    delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
  }
  expect(server.forms.length).toBe(before);
});
