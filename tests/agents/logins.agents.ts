import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HarnessOptions, NodeSpec, RunReport } from "../../src/harness.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { createCertificate } from "../support/egress/certificate.js";
import { ownLoopback, whyNoLowPorts } from "../support/egress/low-ports.js";
import { startTokenServer, type TokenServer } from "../support/egress/token-server.js";
import { filesWith } from "../support/harness/files-with.js";
import { NODE_24 } from "../support/run/runtimes.js";
import { git } from "../support/scratch.js";
import { type AgentBench, createAgentBench, PROGRAMS, whyNoAgent } from "./agent-bench.js";
import { searchedIn } from "./keyless.js";
import { chatGptToken, LOGIN_HOSTS, LOGINS, type Login, serveAccounts } from "./logins.js";
import { type ModelRequest, type ModelServer, startModelServer } from "./model-server.js";
import { say } from "./stage.js";
import { SUBJECTS } from "./subjects.js";

let bench: AgentBench;
let model: ModelServer;
let tokens: TokenServer;
let certificate: string;
beforeAll(async () => {
  bench = await createAgentBench();
  const { harness } = bench;
  const folders = ["certificate", "tokens"].map((name) => join(harness.scratch.path, name));
  for (const folder of folders) mkdirSync(folder);
  const [ours = "", theirs = ""] = folders;
  tokens = await startTokenServer(theirs);
  // With the bench's own settings Gemini CLI wants a key.
  writeFileSync(join(harness.repo, ".gemini", "settings.json"), "{}");
  git(harness.repo, "commit", "--quiet", "-a", "-m", "no key");
  if (whyNoLowPorts() !== undefined) return;
  // It stands for all hosts at their usual port: no variable leads the programs elsewhere.
  const made = createCertificate(ours, LOGIN_HOSTS);
  certificate = made.path;
  model = await startModelServer(made, { address: ownLoopback(), port: 443 });
  serveAccounts(model);
  egressInternals.route = { lookup: async () => [ownLoopback()], isReachable: (found) => found === ownLoopback() };
  egressInternals.ca = [made.cert.toString()];
});
afterAll(async () => {
  await tokens?.[Symbol.asyncDispose]();
  await model?.[Symbol.asyncDispose]();
  await bench?.[Symbol.asyncDispose]();
});

function whyNot({ program }: Login): string | undefined {
  return whyNoAgent(program) ?? whyNoLowPorts();
}

async function run(runId: string, { task }: Login, more: Partial<HarnessOptions>, sandbox: object): Promise<RunReport> {
  const node = { id: "work", kind: "agent", ...task, prompt: "do it", retry: { max: 0 } } as NodeSpec;
  return await bench.harness.run({
    ...{ runId, blueprint: { name: "login", nodes: [node], sandbox, expectsChanges: false } },
    ...{ sandbox: bench.sandbox, limits: { wall: 90_000 }, keep: "never", ...more },
  });
}

/** The model of an agent that searches for the key with which it asked, given in two halves. */
function searching(
  { program }: Login,
  variable: string,
): (request: ModelRequest, at: number) => ReturnType<typeof say> {
  const subject = SUBJECTS.find((each) => each.program === program);
  return ({ auth }, at) => {
    if (at > 0 || subject === undefined) return say("I have searched");
    const key = Object.values(auth)[0]?.replace("Bearer ", "") ?? "";
    const halves = [key.slice(0, key.length / 2), key.slice(key.length / 2)];
    return subject.shell(`${NODE_24.program} ${join(PROGRAMS, "search-inside.mjs")} ${variable} ${halves.join(" ")}`);
  };
}

/** Where the key of the requests is that were for the model. */
function placesOfKey(): readonly string[] {
  const found = searchedIn(model.requests.at(-1)?.texts ?? []);
  expect(found.readable.files).toBeGreaterThan(10);
  return found.value;
}

describe("a copy of a login", () => {
  test.for(LOGINS)("lets the real $program work, and the report says that it is inside", async (login, { skip }) => {
    const reason = whyNot(login);
    if (reason !== undefined) return skip(reason);
    const { program, path, host, header, scheme } = login;
    const [access, refresh] = program === "codex" ? [chatGptToken("access"), "r"] : ["access-0123456789", "r"];
    const file = join(bench.harness.scratch.path, `${program}.json`);
    writeFileSync(file, JSON.stringify(login.content(access, `${refresh}-0123456789`)), { mode: 0o600 });
    model.play(() => say("hello"));
    const { mounts = [], env = {} } = bench.sandbox;
    const trusting = {
      mounts: [...mounts, { source: certificate }],
      env: { ...env, NODE_EXTRA_CA_CERTS: certificate, SSL_CERT_FILE: certificate },
    };
    const runId = `login-${program}`;
    const report = await run(runId, login, { sandbox: trusting }, { home: { [path]: { file } } });
    expect(report.error).toBeUndefined();
    expect(report.nodes[0]).toMatchObject({ status: "success", output: "hello" });
    expect(report.secrets).toEqual([
      { name: `~/${path}`, kept: "inside", why: `a copy of ${file}, as sandbox.home says` },
    ]);
    expect(model.requests.length).toBeGreaterThan(0);
    for (const request of model.requests) {
      expect(request).toMatchObject({ host, auth: { [header]: scheme + access } });
    }
    expect(model.faults).toEqual([]);
    expect(filesWith(access, [bench.harness.directoryOf(runId), bench.harness.stateOf(runId)])).toEqual([]);
  });
});

const REFRESHED: readonly { program: string; variable: string; env?: Record<string, string> }[] = [
  { program: "claude", variable: "CLAUDE_CODE_OAUTH_TOKEN" },
  { program: "codex", variable: "CODEX_CHATGPT_TOKEN", env: { CODEX_CHATGPT_ACCOUNT: "account-1" } },
];

describe("a subscription that is refreshed outside", () => {
  test.for(REFRESHED)(
    "lets the real $program work with no token inside",
    async ({ program, variable, env = {} }, { skip }) => {
      const login = LOGINS.find((each) => each.program === program) as Login;
      const reason = whyNot(login);
      if (reason !== undefined) return skip(reason);
      const store = join(bench.harness.scratch.path, `store-${program}.json`);
      writeFileSync(store, JSON.stringify({ refresh_token: tokens.login() }), { mode: 0o600 });
      model.play(searching(login, variable));
      const from = { oauth: { store, tokenUrl: tokens.url, clientId: "client-1" } };
      const secrets = { [variable]: { hosts: [login.host], header: login.header, from } };
      const network = { allow: [], ca: tokens.caFile };
      const runId = `refreshed-${program}`;
      const report = await run(runId, login, { network, sandbox: { ...bench.sandbox, secrets } }, { env });
      expect(report.error).toBeUndefined();
      expect(report.nodes[0]).toMatchObject({ status: "success", output: "I have searched" });
      expect(report.secrets).toEqual([{ name: variable, kept: "outside", hosts: [login.host] }]);
      expect(model.faults).toEqual([]);
      const used = model.requests.map(({ host, auth }) => [host, auth[login.header]?.slice(login.scheme.length) ?? ""]);
      expect(used).toHaveLength(2);
      for (const [host, token = ""] of used) expect([host, tokens.isValid(token)]).toEqual([login.host, true]);
      expect(placesOfKey()).toEqual([]);
      expect(tokens.forms.at(-1)?.get("client_id")).toBe("client-1");
      expect(tokens.reuses).toBe(0);
    },
  );

  const OWN = LOGINS.filter(({ tokenUrl }) => tokenUrl !== undefined);
  test.for(OWN)("by the real $program itself gives it placeholders, not tokens", async (login, { skip }) => {
    const reason = whyNot(login);
    if (reason !== undefined) return skip(reason);
    const { program, path, host, header, scheme, tokenUrl = "" } = login;
    const isJwt = program === "codex";
    const old = isJwt ? chatGptToken("old", -60_000) : "old-access-0123456789";
    const fresh = isJwt ? chatGptToken("fresh") : "fresh-access-0123456789";
    const { pathname, host: issuer } = new URL(tokenUrl);
    const answer = {
      ...{ access_token: fresh, refresh_token: "fresh-refresh-0123456789", expires_in: 3600, token_type: "Bearer" },
      ...(isJwt ? { id_token: chatGptToken("fresh id") } : { scope: "user:inference user:profile" }),
    };
    model.serve(pathname, answer, "POST");
    model.play(searching(login, "NONE"));
    const file = join(bench.harness.scratch.path, `${program}-old.json`);
    writeFileSync(file, JSON.stringify(login.content(old, "old-refresh-0123456789", -60_000)), { mode: 0o600 });
    const secrets = { LOGIN: { hosts: [host], login: { tokenUrls: [tokenUrl] } } };
    const runId = `own-${program}`;
    const report = await run(runId, login, {}, { home: { [path]: { file } }, secrets });
    expect(report.error).toBeUndefined();
    expect(report.nodes[0]).toMatchObject({ status: "success", output: "I have searched" });
    expect(model.requests.map(({ auth }) => auth)).toEqual([
      { [header]: scheme + fresh },
      { [header]: scheme + fresh },
    ]);
    // The copy is used once, and only at the issuer; what it is exchanged for is not inside.
    const asked = model.pages.filter((page) => page.path === pathname);
    expect(asked.map((page) => page.host)).toEqual([issuer]);
    expect(asked[0]?.text).toContain("old-refresh-0123456789");
    expect(placesOfKey()).toEqual([]);
    expect(model.faults).toEqual([]);
  });
});
