import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { NetworkPolicy, SecretRule } from "../../../../contracts/types.js";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import { egressInternals } from "../../../../src/sandbox/egress/open-egress.js";
import { openSecrets } from "../../../../src/sandbox/egress/secrets.js";
import { startTokenServer, type TokenServer } from "../../../support/egress/token-server.js";
import { startUpstream, type UpstreamServer } from "../../../support/egress/upstream-server.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let tokens: TokenServer;
let upstream: UpstreamServer;
let count = 0;

beforeAll(async () => {
  scratch = createScratch();
  tokens = await startTokenServer(scratch.path);
  upstream = await startUpstream();
});
afterEach(() => {
  upstream.asked.length = 0;
  delete egressInternals.variables;
  delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
});
afterAll(async () => {
  upstream.close();
  await tokens[Symbol.asyncDispose]();
  scratch.remove();
});

function rule(): SecretRule {
  count += 1;
  const store = join(scratch.path, `login-${count}.json`);
  writeFileSync(store, JSON.stringify({ refresh_token: tokens.login() }), { mode: 0o600 });
  return { hosts: ["api.test"], from: { oauth: { store, tokenUrl: tokens.url } } };
}

async function open(network: NetworkPolicy): Promise<void> {
  const secrets = await openSecrets({ LOGIN: rule() }, { visible: [], network: () => network });
  secrets.close();
}

const proxy = (): string => `http://127.0.0.1:${upstream.port}`;

test("a token is asked for through network.upstream, and network.ca is accepted", async () => {
  const before = tokens.forms.length;
  const network = { allow: ["api.test"], upstream: proxy(), ca: tokens.caFile };
  await using _sandbox = await createLocalSandbox({ network, secrets: { LOGIN: rule() } });
  expect(tokens.forms.length).toBe(before + 1);
  expect(upstream.asked).toEqual([`localhost:${tokens.port} `]);
});

test("a token is asked for through the proxy of the user's own variables, unless upstream is none", async () => {
  egressInternals.variables = { HTTPS_PROXY: proxy() };
  await open({ allow: [], ca: tokens.caFile });
  expect(upstream.asked).toEqual([`localhost:${tokens.port} `]);
  await open({ allow: [], ca: tokens.caFile, upstream: "none" });
  expect(upstream.asked.length).toBe(1);
});

test.each([undefined, "0"])(
  "without network.ca, no other authority is accepted behind the proxy (%s)",
  async (variable) => {
    if (variable !== undefined) process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = variable;
    const before = tokens.forms.length;
    await expect(open({ allow: [], upstream: proxy() })).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("DEPTH_ZERO_SELF_SIGNED_CERT"),
    });
    expect(upstream.asked.length).toBe(1);
    expect(tokens.forms.length).toBe(before);
  },
);

test("a proxy that refuses is named in the error", async () => {
  const strict = await startUpstream("Basic none");
  try {
    const network = { allow: [], ca: tokens.caFile, upstream: `http://127.0.0.1:${strict.port}` };
    await expect(open(network)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(
        /^Secret LOGIN has no value: localhost:\d+ can't be reached: the upstream proxy wants/,
      ),
    });
  } finally {
    strict.close();
  }
});
