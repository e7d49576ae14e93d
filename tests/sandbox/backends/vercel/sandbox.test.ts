import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { readRecord } from "../../../../src/ledger/records.js";
import { runtimeDir } from "../../../../src/machine/home.js";
import { explainImport } from "../../../../src/sandbox/backends/vercel/client.js";
import { findCredentials } from "../../../../src/sandbox/backends/vercel/credentials.js";
import { createVercelSandbox } from "../../../../src/sandbox/backends/vercel.js";
import { getSandboxExecutor } from "../../../../src/sandbox/executor.js";
import { deleteSnapshot, listSnapshots } from "../../../../src/sandbox/snapshots.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import type { VercelOptions } from "../../../../src/sandbox/vercel.js";
import { listSandboxes, openSandbox, reap } from "../../../../src/sandbox.js";
import { FakeVercel, PROJECT, TEAM, TOKEN } from "../../../fakes/vercel/server.js";
import { withEnv } from "../../../support/environment.js";
import { type GitServer, serveGit } from "../../../support/git/server.js";
import { createRepository, createScratch, git, type Scratch } from "../../../support/scratch.js";

let service: FakeVercel;
let scratch: Scratch;
const opened: Sandbox[] = [];

beforeAll(async () => {
  scratch = createScratch();
  service = await FakeVercel.start();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((sandbox) => sandbox.teardown()));
});

afterAll(async () => {
  await service.close();
  scratch.remove();
});

async function open(opts: SandboxOptions = {}, vercel: VercelOptions = {}): Promise<Sandbox> {
  const sandbox = await createVercelSandbox({ ...opts, vercel: { ...service.options, ...vercel } });
  opened.push(sandbox);
  return sandbox;
}

describe("what the service is asked for", () => {
  test("a machine is not persistent, has five minutes, no network and a name of its own", async () => {
    const sandbox = await open();
    expect(service.paramsOf(sandbox.id)).toMatchObject({
      persistent: false,
      timeout: 300_000,
      networkPolicy: { mode: "deny-all" },
      tags: { glovebox: sandbox.id },
      projectId: PROJECT,
    });
    expect(sandbox.workDir).toBe("/vercel/sandbox");
    expect(service.requests.some(({ line }) => line.includes(`teamId=${TEAM}`))).toBe(true);
  });

  test.each([
    [{ network: "full" }, {}, { networkPolicy: { mode: "allow-all" } }],
    [
      { network: { allow: ["example.com", "*.example.org"] } },
      {},
      { networkPolicy: { allow: ["example.com", "*.example.org"] } },
    ],
    [{ limits: { cpus: 4 } }, {}, { resources: { vcpus: 4 } }],
    [{ limits: { memory: 5 * 1024 ** 3 } }, {}, { resources: { vcpus: 2 } }],
    [{ image: "vercel/sandbox/python:3.14" }, {}, { image: "vercel/sandbox/python:3.14" }],
    [{}, { runtime: "python3.13" }, { runtime: "python3.13" }],
    [{}, { timeout: 60_000, ports: [3000], region: "sfo1" }, { timeout: 60_000, ports: [3000], region: "sfo1" }],
  ] as [SandboxOptions, VercelOptions, object][])("%j with %j", async (opts, vercel, expected) => {
    const sandbox = await open(opts, vercel);
    expect(service.paramsOf(sandbox.id)).toMatchObject(expected);
    // The layout is the image's business, and the service tells it.
    const workDir = opts.image === undefined ? "/vercel/sandbox" : "/vercel";
    expect([sandbox.workDir, (await sandbox.exec({ argv: ["pwd"] })).stdout]).toEqual([workDir, `${workDir}\n`]);
  });

  test("root, by sudo", async ({ skip }) => {
    if (process.getuid?.() !== 0) skip("not run: only root can give a command another user here");
    const sandbox = await open();
    expect((await sandbox.exec({ argv: ["id", "-u"] })).stdout).toBe("1000\n");
    expect((await sandbox.exec({ argv: ["id", "-u"], user: "root" })).stdout).toBe("0\n");
    const late = await sandbox.exec({ argv: ["sleep", "60"], user: "root", timeout: 500 });
    expect(late).toMatchObject({ exitCode: 137, timedOut: true });
    await expect(sandbox.exec({ argv: ["true"], user: "x y" })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("an idle sandbox listens to nothing, and answers all the same", async () => {
    const sandbox = await open();
    await sandbox.exec({ argv: ["true"] });
    const before = service.requests.length;
    await expect.poll(() => service.listeners(sandbox.id), { interval: 200 }).toBe(0);
    expect((await sandbox.exec({ argv: ["echo", "awake"] })).stdout).toBe("awake\n");
    expect(service.requests.slice(before).filter(({ line }) => /\/cmd\?/.test(line))).toHaveLength(1);
  });
});

describe("bad input, before any request", () => {
  test.each([
    [{ image: "python:3" }, { runtime: "python3.13" }, "invalid_argument", /image \("python:3"\).*vercel\.runtime/],
    [{ baseDir: "/tmp/x" }, {}, "unsupported", /baseDir/],
    [{ mounts: [{ source: "/tmp" }] }, {}, "unsupported", /mounts/],
    [{ repo: "/no/such/repository" }, {}, "not_found", /no\/such\/repository/],
    [{ limits: { pids: 5 } }, {}, "unsupported", /limits\.pids/],
    [{ limits: { memory: 1024 ** 2 } }, {}, "unsupported", /limits\.memory/],
    [{ limits: { cpus: 0.5 } }, {}, "unsupported", /limits\.cpus \(0\.5\)/],
    [{ network: { allow: ["example.com:8443"] } }, {}, "unsupported", /network\.allow\[0\]/],
    [{}, { ports: Array.from({ length: 16 }, (_, i) => 3000 + i) }, "invalid_argument", /vercel\.ports.*15/],
    [{}, { ports: ["http"] }, "invalid_argument", /vercel\.ports\[0\]/],
    [{}, { timeout: "5m" }, "invalid_argument", /vercel\.timeout/],
    [{}, { tokn: "x" }, "invalid_argument", /tokn/],
    [{}, { token: "with space" }, "invalid_argument", /vercel\.token/],
    [{}, { projectId: undefined }, "unauthenticated", /vercel\.token and vercel\.teamId without vercel\.projectId/],
  ] as [SandboxOptions, object, string, RegExp][])("%j with %j is %s", async (opts, vercel, code, message) => {
    const before = service.requests.length;
    const error = await open(opts, vercel).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code, backend: "vercel" });
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain("with space");
    expect(service.requests.length).toBe(before);
  });
});

describe("credentials", () => {
  const jwt = (claims: object): string => `h.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.s`;

  test("explicit, then OIDC, then the three variables", () => {
    const three = { VERCEL_TOKEN: "t", VERCEL_TEAM_ID: "a", VERCEL_PROJECT_ID: "b" };
    const oidc = jwt({ owner_id: "team_o", project_id: "prj_o", exp: Date.now() / 1_000 + 60 });
    const own = { token: TOKEN, teamId: TEAM, projectId: PROJECT };
    expect(findCredentials(own, { ...three, VERCEL_OIDC_TOKEN: oidc })).toEqual(own);
    expect(findCredentials({}, { ...three, VERCEL_OIDC_TOKEN: oidc })).toMatchObject({
      teamId: "team_o",
      projectId: "prj_o",
    });
    expect(findCredentials({}, three)).toEqual({ token: "t", teamId: "a", projectId: "b" });
  });

  test("in a function they come with the request", () => {
    const key = Symbol.for("@vercel/request-context");
    const token = jwt({ owner_id: "team_r", project_id: "prj_r" });
    const context = { get: () => ({ headers: { "x-vercel-oidc-token": token } }) };
    Object.assign(globalThis, { [key]: context });
    try {
      expect(findCredentials({}, {})).toEqual({ token, teamId: "team_r", projectId: "prj_r" });
    } finally {
      delete (globalThis as Record<symbol, unknown>)[key];
    }
  });

  test.each([
    [{}, /no credentials/],
    [{ VERCEL: "1" }, /no credentials/],
    [{ VERCEL_TOKEN: "secret-value" }, /VERCEL_TOKEN without VERCEL_TEAM_ID and VERCEL_PROJECT_ID/],
    [{ VERCEL_OIDC_TOKEN: "garbage" }, /not a JSON web token/],
    [{ VERCEL_OIDC_TOKEN: jwt({ owner_id: "a", project_id: "b", exp: 1 }) }, /expired/],
    [{ VERCEL_OIDC_TOKEN: jwt({ sub: "x" }) }, /no team and project/],
  ])("%j is unauthenticated and says what to set", (env, message) => {
    const error = (() => {
      try {
        return findCredentials({}, env);
      } catch (caught) {
        return caught as Error & { hint?: string };
      }
    })();
    expect(error).toMatchObject({ code: "unauthenticated", message: expect.stringMatching(message) });
    expect((error as { hint?: string }).hint).toMatch(/VERCEL_/);
    expect((error as Error).message).not.toContain("secret-value");
  });

  test("on Vercel without credentials there is no silent local", async () => {
    const none = { VERCEL_OIDC_TOKEN: undefined, VERCEL_TOKEN: undefined, GLOVEBOX_BACKEND: undefined };
    await withEnv({ ...none, VERCEL: "1" }, async () => {
      await expect(openSandbox()).rejects.toMatchObject({ code: "unauthenticated", backend: "vercel" });
      await expect(getSandboxExecutor().execute("true")).rejects.toMatchObject({ code: "unauthenticated" });
    });
  });

  test("a token that is of another team than the one that is named is refused: the SDK would follow the token", () => {
    const token = jwt({ owner_id: "team_token" });
    expect(findCredentials({ token, teamId: "team_token", projectId: "p" }).teamId).toBe("team_token");
    const wrong = (): unknown => findCredentials({ token, teamId: "team_named", projectId: "p" });
    expect(wrong).toThrow(
      expect.objectContaining({ code: "unauthenticated", message: expect.stringMatching(/team_token.*team_named/) }),
    );
  });

  test("another address gets everything that the SDK gives its fetch, or long streams would be cut", async () => {
    const given: { url: string; init: RequestInit & { dispatcher?: unknown } }[] = [];
    const fetch: typeof globalThis.fetch = async (input, init = {}) => {
      given.push({ url: String(input), init });
      return Response.json({ error: { code: "forbidden", message: "no" } }, { status: 403 });
    };
    await withEnv({ GLOVEBOX_VERCEL_API: "http://127.0.0.1:9/api" }, async () => {
      await expect(open({}, { fetch })).rejects.toMatchObject({ code: "permission_denied" });
    });
    expect(given[0]?.url).toMatch(/^http:\/\/127\.0\.0\.1:9\/api\/v3\/sandboxes/);
    expect(given[0]?.init.dispatcher).toBeDefined();
  });

  test("a token never shows up in an error", async () => {
    const fetch: typeof globalThis.fetch = async (_, init) => {
      const said = new Headers(init?.headers).get("authorization");
      return Response.json({ error: { code: "bad_request", message: `bad ${said}` } }, { status: 400 });
    };
    const error = await open({}, { fetch }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "invalid_argument" });
    expect(JSON.stringify([String(error), (error as Error).stack, String((error as Error).cause)])).not.toContain(
      TOKEN,
    );
  });
});

describe("snapshots", () => {
  test("end processes, keep files of the whole machine, can be listed and deleted", async () => {
    const sandbox = await open();
    await sandbox.shell("echo installed > /tmp/tool");
    const child = await sandbox.spawn({ argv: ["sleep", "60"] });
    const id = await sandbox.snapshot();
    await expect(child.wait()).rejects.toMatchObject({
      code: "backend_lost",
      message: expect.stringMatching(/stopped/),
    });
    expect((await sandbox.shell("cat /tmp/tool")).stdout).toBe("installed\n");
    expect((await listSnapshots()).map((each) => each.id)).toContain(id);
    const other = await open();
    await other.restore(id);
    expect((await other.shell("cat /tmp/tool")).stdout).toBe("installed\n");
    await deleteSnapshot(id);
    await expect(sandbox.restore(id)).rejects.toMatchObject({ code: "not_found" });
    expect((await sandbox.exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
  });

  test("leave one machine for each sandbox, and none after teardown", async () => {
    const sandbox = await open();
    const [one, two] = await sandbox.fork({ count: 2 });
    opened.push(one as Sandbox, two as Sandbox);
    const ids = [sandbox, one, two].map((each) => each?.id ?? "");
    expect(ids.map((id) => service.census().filter((name) => name.startsWith(id)).length)).toEqual([1, 1, 1]);
    await Promise.all(opened.splice(0).map((each) => each.teardown()));
    expect(
      service.census().filter((name) => ids.some((id) => name.startsWith(id)) || name.startsWith("snap_")),
    ).toEqual([]);
  });
});

describe("a repository", () => {
  const token = "ghp_repository_token_0123";
  let remote: GitServer;

  beforeAll(async () => {
    createRepository(join(scratch.path, "remotes", "project"));
    remote = await serveGit(join(scratch.path, "remotes"), token);
    service.hosts.set("https://git.example", remote.origin);
  });
  afterAll(() => remote.close());

  test.each([
    ["other", "first"],
    ["new-branch", "second"],
  ])("is cloned by the service onto %s, with a token that stays nowhere", async (branch, subject) => {
    const repo = "https://git.example/project/.git";
    const sandbox = await open({ repo, branch, githubToken: token, env: { HOME: "/tmp" } });
    expect((await sandbox.shell("git rev-parse --abbrev-ref HEAD; git log -1 --format=%s")).stdout).toBe(
      `${branch}\n${subject}\n`,
    );
    expect(
      (await sandbox.shell(`grep -r ${token} . /tmp /proc/[0-9]*/environ; git remote get-url origin`)).stdout,
    ).toBe(`${repo}\n`);
    const asked = service.requests.map(({ line, body }) => [line, body] as const);
    const policies = asked.filter(([line]) => line.includes("network-policy")).map(([, body]) => body);
    expect(policies.at(-1)).toEqual({ mode: "deny-all" });
    expect(JSON.stringify(await readRecord(sandbox.id))).not.toContain(token);
  });

  test("that cannot be cloned is an error without the token, and leaves no machine", async () => {
    const before = service.census();
    const repo = "https://git.example/nowhere/.git";
    const error = await open({ repo, githubToken: token }).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "invalid_argument" });
    expect(`${(error as Error).message}${(error as Error).stack}${String((error as Error).cause)}`).not.toContain(
      token,
    );
    expect(service.census()).toEqual(before);
  });
});

describe("a repository that is looked at from outside", () => {
  const token = "ghp_repository_token_4567";
  const identity = {
    GIT_AUTHOR_NAME: "A",
    GIT_AUTHOR_EMAIL: "a@b",
    GIT_COMMITTER_NAME: "A",
    GIT_COMMITTER_EMAIL: "a@b",
  };
  let remote: GitServer;
  let bare: string;

  beforeAll(async () => {
    const root = join(scratch.path, "looked-at");
    const first = createRepository(join(root, "first"));
    bare = join(root, "project.git");
    git(root, "clone", "--quiet", "--bare", first, bare);
    git(bare, "config", "http.receivepack", "true");
    remote = await serveGit(root, token);
    service.hosts.set("https://looked-at.example", remote.origin);
  });
  afterAll(() => remote.close());

  test("one of this machine goes in with its changes, commits, forks and a push", async () => {
    const repo = createRepository(join(scratch.path, "here"));
    git(repo, "remote", "add", "origin", `${remote.origin}/project.git`);
    const sandbox = await open({ repo, branch: "work", githubToken: token, keep: true });
    expect(sandbox.capabilities.git).toBe(true);
    expect((await sandbox.changes()).files).toEqual([]);
    const script = "echo new > new.txt && git add -A && git commit -qm inside && echo more >> a.txt";
    expect(await sandbox.shell(script, { env: { ...identity, HOME: "/tmp" } })).toMatchObject({ exitCode: 0 });
    const files = [
      { path: "a.txt", status: "modified" },
      { path: "new.txt", status: "added" },
    ];
    expect(await sandbox.changes()).toEqual({ files, patch: expect.stringContaining("+more") });
    const fork = await sandbox.fork();
    opened.push(fork);
    expect((await fork.shell("git rev-parse --abbrev-ref HEAD; git log -1 --format=%s")).stdout).toBe(
      "work-fork-1\ninside\n",
    );
    expect((await fork.changes()).files).toEqual(files);
    await sandbox.teardown();

    const again = await open({ id: sandbox.id, keep: false, githubToken: token });
    expect(await again.pushBranch("work", token)).toEqual({ pushed: true });
    expect(git(bare, "log", "--format=%s", "-2", "work").split("\n")).toContain("inside");
    expect(git(bare, "show", "work:a.txt")).toBe("one more\nmore");
    const other = await open();
    const elsewhere = await other.snapshot();
    await expect(again.restore(elsewhere)).rejects.toMatchObject({ code: "conflict" });
    await deleteSnapshot(elsewhere);
  });

  test("one that the service cloned is cloned here when it is first asked about", async () => {
    const url = "https://looked-at.example/project.git";
    const sandbox = await open({ repo: url, githubToken: token, keep: true });
    await sandbox.writeFile("new.txt", "new\n");
    await sandbox.teardown();
    // This machine knows the remote by another name than the service.
    const path = join(runtimeDir(sandbox.id), "record.json");
    const text = readFileSync(path, "utf8");
    expect(text).toContain(url);
    writeFileSync(path, text.replaceAll(url, `${remote.origin}/project.git`));
    const again = await open({ id: sandbox.id, keep: false, githubToken: token });
    expect((await again.changes()).files).toEqual([{ path: "new.txt", status: "added" }]);
    expect(await again.defaultBranch()).toBe("main");
    expect(await again.pushBranch("cloned", token)).toEqual({ pushed: true });
    expect(git(bare, "show", "cloned:new.txt")).toBe("new");
  });
});

describe("the package @vercel/sandbox", () => {
  test("may be given as a module", async () => {
    const sdk = await import("@vercel/sandbox");
    const sandbox = await open({}, { sdk });
    expect((await sandbox.exec({ argv: ["echo", "given"] })).stdout).toBe("given\n");
  });

  test("is an optional peer with the version that the tests run on", () => {
    const own = JSON.parse(readFileSync(new URL("../../../../package.json", import.meta.url), "utf8")) as Record<
      string,
      never
    >;
    expect(own["peerDependenciesMeta"]).toMatchObject({ "@vercel/sandbox": { optional: true } });
    expect(own["dependencies"]).not.toHaveProperty("@vercel/sandbox");
    expect(own["peerDependencies"]).toMatchObject({ "@vercel/sandbox": ">=3.5" });
  });

  test("that is missing is named with the line that installs it", () => {
    const missing = Object.assign(new Error("Cannot find package '@vercel/sandbox'"), { code: "ERR_MODULE_NOT_FOUND" });
    expect(() => explainImport(missing)).toThrow(
      expect.objectContaining({ code: "missing_dependency", hint: "npm install @vercel/sandbox" }),
    );
    const broken = Object.assign(new Error("Cannot find package 'zod'"), { code: "ERR_MODULE_NOT_FOUND" });
    expect(() => explainImport(broken)).toThrow(broken);
  });
});

describe("what a crash leaves", () => {
  test("is known before the service hears of it, and is taken away by reap", async () => {
    const sandbox = await open();
    const record = await readRecord(sandbox.id);
    expect(record?.resources).toEqual([
      expect.objectContaining({ kind: "vercel-machine", teamId: TEAM, projectId: PROJECT }),
    ]);
    expect(JSON.stringify(record)).not.toContain(TOKEN);
    // As if the process that made it had died.
    const dead = { ...record, owner: { ...record?.owner, startTime: "1" } };
    writeFileSync(join(runtimeDir(sandbox.id), "record.json"), JSON.stringify(dead));
    expect((await listSandboxes()).find(({ id }) => id === sandbox.id)).toMatchObject({
      backend: "vercel",
      alive: false,
    });
    expect((await reap({ backend: "vercel" })).removed).toContain(sandbox.id);
    expect(service.census().filter((name) => name.startsWith(sandbox.id))).toEqual([]);
    await sandbox.teardown();
  });

  test("a kept sandbox outlives reap, without what its process held", async () => {
    const sandbox = await open({ keep: true });
    await sandbox.writeFile("file", "kept");
    await sandbox.teardown();
    expect((await reap({ backend: "vercel" })).kept).toContain(sandbox.id);
    const again = await createVercelSandbox({ id: sandbox.id, keep: false, vercel: service.options });
    expect(await again.readFile("file")).toBe("kept");
    await again.teardown();
    expect(service.census().filter((name) => name.startsWith(sandbox.id))).toEqual([]);
  });
});
