import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fetchOauthToken, tokenInternals } from "../../../../src/sandbox/egress/secrets/credentials.js";
import { startTokenServer, type TokenServer } from "../../../support/egress/token-server.js";
import { compileSources, startChild } from "../../../support/run/compiled.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const DIRECT = { upstreamFor: () => undefined, ca: undefined };
let scratch: Scratch;
let server: TokenServer;
let compiled: ReturnType<typeof compileSources>;
let count = 0;

beforeAll(async () => {
  scratch = createScratch();
  compiled = compileSources();
  server = await startTokenServer(scratch.path);
  tokenInternals.ca = server.ca;
});

afterAll(async () => {
  delete tokenInternals.ca;
  await server[Symbol.asyncDispose]();
  compiled.remove();
  scratch.remove();
});

/** A file with a login of its own. */
function store(content: object = { refresh_token: server.login(), note: "kept" }): string {
  count += 1;
  const path = join(scratch.path, `login-${count}.json`);
  writeFileSync(path, JSON.stringify(content), { mode: 0o600 });
  return path;
}

async function fetch(path: string, tokenUrl = server.url): Promise<{ value: string; expiresAt?: number }> {
  const read = async (): Promise<string> => readFileSync(path, "utf8");
  return await fetchOauthToken("LOGIN", { tokenUrl, clientId: "me" }, { path, read }, DIRECT);
}

test("a token is refreshed once, and used until it expires", async () => {
  const path = store();
  const before = server.forms.length;
  const first = await fetch(path);
  expect(server.isValid(first.value)).toBe(true);
  expect(await fetch(path)).toEqual(first);
  expect(server.forms.length).toBe(before + 1);
  expect(server.forms.at(-1)?.get("client_id")).toBe("me");
});

test("the rotated token is in the file, which stays private and keeps what else it has", async () => {
  const path = store();
  const { refresh_token: old } = JSON.parse(readFileSync(path, "utf8"));
  const { value } = await fetch(path);
  const written = JSON.parse(readFileSync(path, "utf8"));
  expect(written).toMatchObject({ note: "kept", access_token: value, expires_at: expect.any(String) });
  expect(written.refresh_token).not.toBe(old);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(scratch.path).filter((name) => /\.(?:lock|tmp)$/.test(name))).toEqual([]);
});

test("a link to the file stays a link", async () => {
  const path = store();
  const link = `${path}.link`;
  symlinkSync(path, link);
  const { value } = await fetch(link);
  expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ access_token: value });
});

test("two processes at once never use a refresh token twice", async () => {
  const path = store();
  // Every fetch refreshes: no token lasts long enough to be used again.
  server.lifetime = 60;
  const before = server.forms.length;
  try {
    const args = [path, server.url, server.caFile, "5"];
    const children = [1, 2].map(() => startChild(compiled.directory, "refresh-token.mjs", args));
    const ends = await Promise.all(children.map((child) => child.ended));
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
  } finally {
    server.lifetime = 3600;
  }
  expect(server.forms.length - before).toBe(20);
  expect(server.reuses).toBe(0);
  // The login is still alive, which a reuse would have ended.
  expect(server.isValid((await fetch(path)).value)).toBe(true);
});

test("the server of this test does revoke a login whose token is used twice", async () => {
  const path = store();
  const old = readFileSync(path, "utf8");
  const { value } = await fetch(path);
  writeFileSync(path, old);
  await expect(fetch(path)).rejects.toMatchObject({
    code: "unauthenticated",
    message: `Secret LOGIN has no value: localhost:${server.port} refused to issue a token: 400 invalid_grant`,
  });
  expect(server.isValid(value)).toBe(false);
});

test.each([
  ["no JSON", "{"],
  ["null", "null"],
  ["no token", "{}"],
  ["a token that no header can carry", JSON.stringify({ refresh_token: "refresh\r\nX: y" })],
])("a file without a login is refused: %s", async (_, content) => {
  const path = store();
  writeFileSync(path, content);
  await expect(fetch(path)).rejects.toMatchObject({
    code: "unauthenticated",
    message: expect.stringContaining("LOGIN"),
  });
  expect(readFileSync(path, "utf8")).toBe(content);
});

test.each(["fails", "html", "moves"])(
  "an endpoint that does not issue one leaves the file as it was: %s",
  async (path) => {
    const file = store();
    const before = readFileSync(file, "utf8");
    await expect(fetch(file, server.url.replace("token", path))).rejects.toMatchObject({ code: "unavailable" });
    expect(readFileSync(file, "utf8")).toBe(before);
  },
);
