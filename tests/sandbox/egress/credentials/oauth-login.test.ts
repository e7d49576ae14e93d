import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SecretBroker } from "../../../../src/sandbox/egress/secret-broker.js";
import { createBroker } from "../../../../src/sandbox/egress/secrets/create-broker.js";
import { TokenVault } from "../../../../src/sandbox/egress/secrets/credentials.js";
import { LoginSecret } from "../../../../src/sandbox/egress/secrets/login-secret.js";
import { type InspectedOrigin, startInspectedOrigin } from "../../../support/egress/inspected-origin.js";
import { startTokenServer, type TokenServer } from "../../../support/egress/token-server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const [AUTH, API, OTHER] = ["auth.login.test", "api.login.test", "other.login.test"];
const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
const CLAIMS = ["eyJhbGciOiJSUzI1NiJ9", Buffer.from('{"email":"me@example.invalid"}').toString("base64url")].join(".");
const ID_TOKEN = `${CLAIMS}.c2lnbmF0dXJlLXNpZ25hdHVyZQ`;

let scratch: Scratch;
let tokens: TokenServer;
let origin: InspectedOrigin;
let login: LoginSecret;
let broker: SecretBroker;
/** The Authorization headers that hosts got. */
const seen: Record<string, string[]> = { [AUTH]: [], [API]: [], [OTHER]: [] };
const codings: string[] = [];
let answers: Record<string, { type?: string; coding?: string; body: string | Buffer }> = {};

beforeAll(async () => {
  scratch = createScratch();
  const folder = join(scratch.path, "tokens");
  mkdirSync(folder);
  tokens = await startTokenServer(folder, (form) =>
    form.get("code") === "the-code"
      ? {
          ...tokens.grant(new URLSearchParams({ grant_type: "refresh_token", refresh_token: tokens.login() })),
          id_token: ID_TOKEN,
        }
      : undefined,
  );
  const lazy: Pick<SecretBroker, "changesOf"> = { changesOf: (...args) => broker.changesOf(...args) };
  origin = await startInspectedOrigin(scratch.path, [AUTH, API, OTHER], lazy, ({ url, headers, body }, response) => {
    const all = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
    const host = (all["host"] ?? "").replace(/:.*/, "");
    if (all["authorization"] !== undefined) seen[host]?.push(all["authorization"]);
    const fixed = answers[url];
    if (fixed !== undefined) {
      if (fixed.type !== undefined) response.setHeader("Content-Type", fixed.type);
      if (fixed.coding !== undefined) response.setHeader("Content-Encoding", fixed.coding);
      response.end(fixed.body);
    } else if (host === AUTH) {
      codings.push(all["accept-encoding"] ?? "");
      const form =
        url === "/json" ? new URLSearchParams(JSON.parse(body.toString())) : new URLSearchParams(body.toString());
      const answer = tokens.grant(form);
      response.setHeader("Content-Type", "application/json; charset=utf-8");
      if (answer === undefined) response.writeHead(400).end('{"error":"invalid_grant"}');
      else response.end(JSON.stringify({ nested: { list: [answer] }, ...answer }));
    } else response.end(`you sent ${all["authorization"]}`);
  });
  const at = (host: string, path = ""): string => `${host}:${origin.port}${path}`;
  const tokenUrls = ["/token", "/json", "/fixed"].map((path) => `https://${at(AUTH, path)}`);
  login = new LoginSecret("LOGIN", { hosts: [at(API)] }, tokenUrls);
  broker = createBroker([], [login]);
});

afterAll(async () => {
  await origin[Symbol.asyncDispose]();
  await tokens[Symbol.asyncDispose]();
  scratch.remove();
});

interface Answered {
  access_token: string;
  refresh_token: string;
  id_token: string;
  nested: { list: [{ access_token: string }] };
  expires_in: number;
}

async function ask(fields: Record<string, string>, path = "/token"): Promise<{ status: number; body: Answered }> {
  const isJson = path === "/json";
  const headers = isJson ? { "Content-Type": "application/json" } : { ...FORM, "Accept-Encoding": "gzip" };
  const sent = isJson ? JSON.stringify(fields) : new URLSearchParams(fields).toString();
  const { status, body } = await origin.send(AUTH, { method: "POST", path, headers }, sent);
  expect(body).not.toMatch(/access-|refresh-|c2lnbmF0dXJl/);
  return { status, body: JSON.parse(body) as Answered };
}

const logIn = (): Promise<{ status: number; body: Answered }> =>
  ask({ grant_type: "authorization_code", code: "the-code" });
const refresh = (refresh_token: string, path?: string): ReturnType<typeof ask> =>
  ask({ grant_type: "refresh_token", refresh_token }, path);
const last = (host: string): string => seen[host]?.at(-1)?.replace("Bearer ", "") ?? "";

test("the tokens of a login are placeholders inside, and real at its hosts only", async () => {
  const { body } = await logIn();
  expect(body).toMatchObject({ access_token: expect.stringMatching(/^glovebox\w{32}$/), expires_in: 3600 });
  expect(body.nested.list[0].access_token).toMatch(/^glovebox\w{32}$/);
  const headers = { Authorization: `Bearer ${body.access_token}` };
  const shown = await origin.send(API, { headers });
  expect(tokens.isValid(last(API))).toBe(true);
  expect(shown.body).toBe(`you sent Bearer ${body.access_token}`);
  await origin.send(OTHER, { headers });
  expect(last(OTHER)).toBe(body.access_token);
  await origin.send(AUTH, { headers, path: "/userinfo" });
  expect(last(AUTH)).toBe(body.access_token);
});

test("a signed token keeps its claims and loses its signature", async () => {
  const { body } = await logIn();
  expect(body.id_token).toMatch(new RegExp(`^${CLAIMS.replaceAll(".", "\\.")}\\.glovebox\\w{32}$`));
  await origin.send(API, { headers: { Authorization: `Bearer ${body.id_token}` } });
  expect(last(API)).toBe(ID_TOKEN);
});

test("an answer is asked for uncompressed", async () => {
  await logIn();
  expect(codings.at(-1)).toBe("identity");
});

test.each(["/token", "/json"])(
  "a refresh token is put in its place, and its placeholder stays when it rotates: %s",
  async (path) => {
    const first = (await logIn()).body;
    const second = (await refresh(first.refresh_token, path)).body;
    expect(second.refresh_token).toBe(first.refresh_token);
    expect(second.access_token).not.toBe(first.access_token);
    expect((await refresh(second.refresh_token, path)).status).toBe(200);
    expect(tokens.reuses).toBe(0);
  },
);

test("programs that refresh at the same time take turns, so that no token is used twice", async () => {
  const { refresh_token } = (await logIn()).body;
  const all = await Promise.all(Array.from({ length: 8 }, () => refresh(refresh_token)));
  expect(all.map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect(tokens.reuses).toBe(0);
  await origin.send(API, { headers: { Authorization: `Bearer ${all.at(-1)?.body.access_token}` } });
  expect(tokens.isValid(last(API))).toBe(true);
});

test("a refusal of the endpoint comes through", async () => {
  expect(await refresh("refresh_of_nobody")).toEqual({ status: 400, body: { error: "invalid_grant" } });
});

const TOKENS = '{"access_token":"access-0123456789"}';
test.each([
  ["compressed", { type: "application/json", coding: "gzip", body: gzipSync(TOKENS) }, "it is compressed"],
  ["neither JSON nor a form", { type: "text/html", body: TOKENS }, "neither JSON nor a form"],
  ["of no type", { body: TOKENS }, "neither JSON nor a form"],
])("an answer that can't be searched is refused: %s", async (_, answer, why) => {
  answers = { "/fixed": answer };
  const got = await origin.send(AUTH, { method: "POST", path: "/fixed", headers: FORM }, "a=b");
  expect(got).toMatchObject({ status: 502, body: expect.stringContaining(why) });
  expect(got.body).not.toContain("access-");
});

test("an answer that is too long, or not the JSON that it says, is cut off", async () => {
  for (const body of [`{"a":"${"x".repeat(2 << 20)}","access_token":"access-0123456789"}`, TOKENS.slice(0, -1)]) {
    answers = { "/fixed": { type: "application/json", body } };
    const got = origin.send(AUTH, { method: "POST", path: "/fixed", headers: FORM }, "a=b");
    const shown = await got.then(({ status, body: text }) => `${status} ${text}`, String);
    expect(shown).not.toContain("access-");
    expect(shown).toMatch(/^502 |aborted|terminated|hang up/);
  }
});

test("a form as an answer is searched, too", async () => {
  answers = { "/fixed": { type: "application/x-www-form-urlencoded", body: "access_token=access-0123456789&scope=a" } };
  const { body } = await origin.send(AUTH, { method: "POST", path: "/fixed", headers: FORM }, "a=b");
  expect(body).toMatch(/^access_token=glovebox\w{32}&scope=a$/);
});

test("a token comes in by no other field of the answer", async () => {
  const [token, other] = ["access-in-two-fields", "access-in-a-list"];
  const fresh = { raw: `token=${token}`, access_token: token, "session-token": other, list: [{ token: other }] };
  answers = { "/fixed": { type: "application/json", body: JSON.stringify(fresh) } };
  const { body } = await origin.send(AUTH, { method: "POST", path: "/fixed", headers: FORM }, "a=b");
  expect(body).not.toContain("access-");
  const got = JSON.parse(body) as Record<string, string>;
  expect(got["raw"]).toBe(`token=${got["access_token"]}`);
  expect(got["list"]).toEqual([{ token: got["session-token"] }]);
});

test("what only describes a token stays as it is", async () => {
  const described = {
    token_type: "Bearer",
    issued_token_type: "urn:a:b",
    next_page_token: "7",
    expires_in: 3600,
    scope: "a b",
  };
  answers = { "/fixed": { type: "application/json", body: JSON.stringify(described) } };
  const { body } = await origin.send(AUTH, { method: "POST", path: "/fixed", headers: FORM }, "a=b");
  expect(JSON.parse(body)).toEqual(described);
});

test.each([
  ["POST", "/%66ixed"],
  ["POST", "//fixed"],
  ["POST", "/fixed/"],
  ["POST", "/FIXED"],
  ["POST", "/./fixed"],
  ["POST", "/other/../fixed"],
  ["POST", "/other/%2e%2e/fixed"],
  ["POST", "/%2566ixed"],
  ["POST", "/fixed;a=b"],
  ["POST", "/fixed?a=b"],
  ["POST", "/fixed%20"],
  ["PUT", "/fixed"],
  ["post", "/fixed"],
  ["GET", "/fixed"],
])("tokens come in by no other spelling of the endpoint: %s %s", async (method, path) => {
  // One that nobody has seen: it would be masked.
  const fresh = JSON.stringify({ access_token: `access-${method}-${Buffer.from(path).toString("hex")}` });
  answers = { [path]: { type: "application/json", body: fresh } };
  const { status, body } = await origin.send(
    AUTH,
    { method, path, headers: FORM },
    method === "GET" ? undefined : "a=b",
  );
  expect({ status, body }).toEqual({
    status: 200,
    body: expect.stringMatching(/^\{"access_token":"glovebox\w{32}"\}$/),
  });
});

test("other paths of the endpoint's host are left alone", async () => {
  for (const path of ["/fixed/more", "/fix", "/fixed2", "/a/fixed"]) {
    answers = { [path]: { type: "text/html", body: "plain" } };
    expect(await origin.send(AUTH, { method: "POST", path, headers: FORM }, "a=b")).toMatchObject({
      status: 200,
      body: "plain",
    });
  }
});

test("after closing, a placeholder is nothing", async () => {
  const own = new LoginSecret("LOGIN", { hosts: [API] }, [`https://${AUTH}/token`]);
  expect(own.hosts.map(({ host, port }) => `${host}:${port}`)).toEqual([`${API}:443`, `${AUTH}:443`]);
  own.close();
  expect(own.tokens).toEqual([]);
});

test("what is concealed is revealed again, whatever an answer looks like", () => {
  let count = 0;
  const name = fc.constantFrom("access_token", "refresh_token", "id_token", "accessToken", "other", "__proto__");
  const token = fc
    .string({ minLength: 1, maxLength: 12, unit: fc.constantFrom(..."abc$&.-") })
    .map((text) => `t!${text}`);
  const answer = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: "small" }, token, fc.integer(), fc.array(tie("any")), fc.dictionary(name, tie("any"))),
  })).any;
  fc.assert(
    fc.property(answer, (value) => {
      const forgotten: string[] = [];
      const vault = new TokenVault({
        placeholder: () => `<${count++}>`,
        onToken: (each) => () => void forgotten.push(each),
      });
      const concealed = JSON.stringify(vault.conceal(value, undefined));
      expect(concealed).not.toMatch(/"(?:access_token|refresh_token|id_token|accessToken)":"t!/);
      expect(vault.reveal(concealed)).toBe(JSON.stringify(value));
      vault.clear();
      expect(vault.tokens).toEqual([]);
    }),
  );
});
