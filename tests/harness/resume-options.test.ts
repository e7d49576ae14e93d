import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ON_RESUME, resumedOptions, splitOptions } from "../../src/harness/store/resumed-options.js";
import { type BlueprintSpec, type HarnessOptions, resumeRun, runHarness } from "../../src/harness.js";
import { ON_REOPEN, reopenOptions, rulesOf } from "../../src/sandbox/lifecycle/kept-options.js";
import { validateSandboxOptions } from "../../src/sandbox/lifecycle/options.js";
import type { SandboxOptions } from "../../src/sandbox/types.js";
import { listSandboxes, openSandbox, removeSandbox } from "../../src/sandbox.js";
import { createRepository, createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
let repo: string;
beforeAll(() => {
  scratch = createScratch();
  repo = createRepository(join(scratch.path, "repo"));
});
afterAll(async () => {
  for (const { id } of await listSandboxes()) await removeSandbox(id);
  scratch.remove();
});

/** Every option, with a value; TypeScript goes red when one is missing. */
const EVERY: Required<Omit<SandboxOptions, "folder">> = {
  repo: "/repo",
  branch: "branch",
  baseDir: "/base",
  workspace: "copy",
  workDir: "/workspace",
  paths: "sandbox",
  image: "debian",
  snapshot: "saved",
  ttl: 4_000,
  idleTimeout: 5_000,
  id: "0123456789abcdef",
  name: "mine",
  ifExists: "reopen",
  labels: { team: "blue" },
  keep: true,
  operationTimeout: 1_000,
  runTimeout: 2_000,
  maxOutput: 3_000,
  env: { NAME: "value" },
  allow: ["sh"],
  network: { allow: ["example.org"] },
  secrets: { TOKEN: { hosts: ["example.org"] } },
  limits: { pids: 10 },
  isolation: "required",
  mounts: [{ source: "/srv" }],
  publish: [3000],
  signal: new AbortController().signal,
  onEvent: () => undefined,
  onBlocked: () => "deny",
  audit: "/audit.jsonl",
  githubToken: "token",
  gitFilters: ["lfs"],
  gitAlternates: ["/srv/objects"],
  local: {},
  daytona: {
    apiKey: "key",
    apiUrl: "https://example.org",
    target: "eu",
    snapshot: "small",
    resources: { cpu: 1 },
    autoStopMinutes: 5,
    ttlMinutes: 10,
    client: {},
  } satisfies Required<NonNullable<SandboxOptions["daytona"]>>,
  docker: {
    host: "unix:///run/x.sock",
    context: "other",
    certPath: "/certs",
    workDir: "/w",
    user: "nobody",
    hostname: "box",
    pull: "never",
    guest: "volume",
    unsafe: { hostPid: true },
  } satisfies Required<NonNullable<SandboxOptions["docker"]>>,
  kubernetes: {
    context: "other",
    kubeconfig: "/config",
    namespace: "team",
    image: "debian",
    runtimeClassName: "gvisor",
    serviceAccount: "sandbox",
    nodeSelector: { pool: "sandboxes" },
    tolerations: [{ operator: "Exists" }],
    resources: { cpu: "1" },
    podTemplate: { spec: { priorityClassName: "low" } },
    warmPool: "ready",
    workDir: "/w",
    user: "1000",
    lease: 60_000,
  } satisfies Required<NonNullable<SandboxOptions["kubernetes"]>>,
  vercel: {
    token: "token",
    teamId: "team",
    projectId: "project",
    runtime: "python3.13",
    timeout: 1_000,
    ports: [80],
    region: "iad1",
    snapshotExpiration: 0,
    fetch: globalThis.fetch,
    sdk: {},
  } satisfies Required<NonNullable<SandboxOptions["vercel"]>>,
  dagger: {
    cli: "/dagger",
    session: { port: 1, token: "token" },
    setup: [["true"]],
    services: { db: { image: "postgres" } },
    secrets: { TOKEN: "env://TOKEN" },
    linger: 5,
    sdk: {},
  } satisfies Required<NonNullable<SandboxOptions["dagger"]>>,
};
/** Secrets, and things of this process. */
const NEVER_WRITTEN = {
  local: [],
  docker: [],
  kubernetes: [],
  daytona: ["apiKey", "client"],
  vercel: ["token", "fetch", "sdk"],
  dagger: ["session", "services", "sdk"],
} as const;
const backends = Object.keys(NEVER_WRITTEN) as (keyof typeof NEVER_WRITTEN)[];

describe("every option of a sandbox has its place", () => {
  test.each(Object.keys(EVERY))("%s", (name) => {
    for (const table of [ON_REOPEN, ON_RESUME]) {
      expect(Object.hasOwn(table, name) || Object.hasOwn(NEVER_WRITTEN, name)).toBe(true);
    }
    // What is checked is what there is: an option that the check does not know cannot be given at all.
    try {
      validateSandboxOptions({ [name]: Symbol("wrong") });
    } catch (error) {
      expect(String(error)).not.toContain("Unknown option");
    }
  });

  test("when a run goes on: it is written, has to be given again, or is not the sandbox's", async () => {
    const { written, again } = await splitOptions(EVERY);
    for (const [name, fate] of Object.entries(ON_RESUME)) {
      const value = EVERY[name as keyof typeof EVERY];
      if (fate === "written") expect(written, name).toHaveProperty(name, value);
      else expect(written, name).not.toHaveProperty(name);
    }
    expect(again).toContain("env.NAME");
    for (const name of backends) {
      const never: readonly string[] = NEVER_WRITTEN[name];
      for (const [key, value] of Object.entries(EVERY[name])) {
        if (!never.includes(key)) expect(written[name], `${name}.${key}`).toHaveProperty(key, value);
        else {
          expect(again).toContain(`${name}.${key}`);
          expect(written[name], `${name}.${key}`).not.toHaveProperty(key);
        }
      }
    }
    // What is written is nothing but data.
    expect(JSON.parse(JSON.stringify(written))).toEqual(written);
    for (const secret of ["token", "key"]) expect(JSON.stringify(written)).not.toContain(`"${secret}"`);
  });

  test("and the sandbox gets all of it back, or there is none", async () => {
    const { written, again } = await splitOptions(EVERY);
    const { daytona, vercel, dagger } = EVERY;
    const given: SandboxOptions = {
      env: EVERY.env,
      daytona: { apiKey: daytona.apiKey ?? "", client: daytona.client },
      vercel: { token: vercel.token ?? "", fetch: vercel.fetch ?? fetch, sdk: vercel.sdk },
      dagger: { session: { port: 1, token: "token" }, services: dagger.services ?? {}, sdk: dagger.sdk },
    };
    const options = await resumedOptions("x", written, again, given);
    for (const name of Object.keys(EVERY) as (keyof typeof EVERY)[]) {
      if (["session", "run"].includes((ON_RESUME as Record<string, string>)[name] ?? "")) continue;
      expect(options[name], name).toEqual(EVERY[name]);
    }
    for (const name of again) {
      const less = structuredCloneWithout(given, name);
      await expect(resumedOptions("x", written, again, less), name).rejects.toThrow(`sandbox.${name}`);
    }
    for (const other of [{ allow: ["id"] }, { isolation: "none" }, { docker: { unsafe: {} } }, { id: "x" }] as const) {
      await expect(resumedOptions("x", {}, [], other)).rejects.toThrow("that it was started with");
    }
  });

  test("when a kept sandbox is opened again: what restricts is as it was", () => {
    const rules = rulesOf(EVERY);
    const others = rulesOf({ network: "full", isolation: "none" });
    for (const [name, fate] of Object.entries(ON_REOPEN)) {
      const value = EVERY[name as keyof typeof EVERY];
      if (fate === "restored" || fate === "fixed")
        expect(reopenOptions({}, rules, EVERY), name).toHaveProperty(name, value);
      if (fate !== "restored") expect(rules.options, name).not.toHaveProperty(name);
      if (fate !== "fixed") continue;
      expect(() => reopenOptions({ [name]: value }, others, {}), name).toThrow(`Option ${name}`);
      expect(reopenOptions({ [name]: value }, rules, EVERY), name).toHaveProperty(name, value);
    }
  });
});

describe("a run that goes on", () => {
  const nodes: BlueprintSpec["nodes"] = [
    { id: "one", kind: "command", shell: "echo one" },
    { id: "two", kind: "command", run: ["id"] },
  ];
  const run = (more: Partial<HarnessOptions>): ReturnType<typeof runHarness> =>
    runHarness({ blueprint: { name: "b", nodes }, repo, intent: "x", sandboxType: "local", until: "one", ...more });

  test.each(["never", "always"] as const)("with keep %s starts no program that was not allowed", async (keep) => {
    const first = await run({ keep, sandbox: { allow: ["/bin/sh"] } });
    expect(first.status).toBe("success");
    const again = await resumeRun({ runId: first.runId });
    expect(again.nodes[1]).toMatchObject({ id: "two", status: "failure", error: { code: "command_not_allowed" } });
  });

  test.each(["never", "always"] as const)("with keep %s has the mounts that it had", async (keep) => {
    const source = join(scratch.path, `shared-${keep}`);
    mkdirSync(source);
    writeFileSync(join(source, "note"), "from the host");
    const look: BlueprintSpec["nodes"] = [
      { id: "one", kind: "command", run: ["cat", "/shared/note"] },
      { id: "two", kind: "command", run: ["cat", "/shared/note"] },
    ];
    const first = await run({
      keep,
      blueprint: { name: "b", nodes: look },
      sandbox: { mounts: [{ source, target: "/shared" }] },
    });
    const again = await resumeRun({ runId: first.runId });
    expect(again.nodes.map(({ status, output }) => [status, output])).toEqual([
      ["success", "from the host"],
      ["success", "from the host"],
    ]);
  });

  test("by code of its repository goes on with that very code, or not at all", async () => {
    const folder = join(repo, ".glovebox", "blueprints");
    mkdirSync(folder, { recursive: true });
    const part = join(folder, "part.mjs");
    writeFileSync(part, "export const word = 'first';");
    const node = (id: string): string => `{ id: "${id}", kind: "command", exec: async () => ({ output: word }) }`;
    const head = 'import { word } from "./part.mjs";';
    writeFileSync(
      join(folder, "coded.mjs"),
      `${head} export default { name: "c", nodes: [${node("one")}, ${node("two")}] };`,
    );
    const { runId } = await run({ blueprint: "coded", trust: true });
    writeFileSync(part, "export const word = 'other';");
    await expect(resumeRun({ runId })).rejects.toMatchObject({ code: "permission_denied" });
    await expect(resumeRun({ runId, trust: true })).rejects.toMatchObject({ code: "conflict" });
    writeFileSync(part, "export const word = 'first';");
    expect((await resumeRun({ runId })).nodes[1]).toMatchObject({ status: "success", output: "first" });
  });

  test("without a variable that was not written down is refused, and with it goes on", async () => {
    const show: BlueprintSpec["nodes"] = [
      { id: "one", kind: "command", shell: 'echo "$NAME"' },
      { id: "two", kind: "command", shell: 'echo "$NAME"' },
    ];
    const { runId } = await run({ blueprint: { name: "b", nodes: show }, sandbox: { env: { NAME: "given" } } });
    await expect(resumeRun({ runId })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("sandbox.env.NAME"),
    });
    const again = await resumeRun({ runId, sandbox: { env: { NAME: "given" } } });
    expect(again.nodes[1]).toMatchObject({ status: "success", output: "given\n" });
  });

  test("without a secret of env is refused, and never gets what hides it", async () => {
    const secret = "not-to-be-written-0123456789";
    const show: BlueprintSpec["nodes"] = [
      { id: "one", kind: "command", shell: "echo one" },
      { id: "two", kind: "command", shell: 'test "$DEPLOY_TOKEN" = not-to-be-written-0123456789' },
    ];
    const before = process.env["DEPLOY_TOKEN"];
    process.env["DEPLOY_TOKEN"] = secret;
    try {
      const { runId } = await run({ blueprint: { name: "b", nodes: show }, env: { DEPLOY_TOKEN: secret, PLAIN: "p" } });
      await expect(resumeRun({ runId })).rejects.toMatchObject({
        code: "invalid_argument",
        message: expect.stringContaining("DEPLOY_TOKEN"),
      });
    } finally {
      if (before === undefined) delete process.env["DEPLOY_TOKEN"];
      else process.env["DEPLOY_TOKEN"] = before;
    }
  });
});

describe("a kept sandbox that is opened again", () => {
  test("has its mounts, allowed programs, deadline and most output as before", async () => {
    const source = join(scratch.path, "mounted");
    mkdirSync(source);
    writeFileSync(join(source, "note"), "here");
    const made = await openSandbox({
      backend: "local",
      keep: true,
      mounts: [{ source, target: "/mounted" }],
      allow: ["cat", "sleep", "/bin/sh"],
      operationTimeout: 1_500,
      maxOutput: 64,
    });
    await made.teardown();
    const again = await openSandbox({ backend: "local", id: made.id });
    try {
      expect((await again.exec({ argv: ["cat", "/mounted/note"] })).stdout).toBe("here");
      await expect(again.exec({ argv: ["id"] })).rejects.toMatchObject({ code: "command_not_allowed" });
      expect(await again.exec({ argv: ["sleep", "30"] })).toMatchObject({ timedOut: true });
      const long = await again.shell("i=0; while [ $i -lt 100 ]; do echo 0123456789; i=$((i+1)); done");
      expect(long.truncated.stdout).toBe(true);
      expect(long.stdout.length).toBeLessThan(400);
    } finally {
      await again.teardown();
    }
    // What the call says itself wins.
    const wider = await openSandbox({ backend: "local", id: made.id, allow: ["id"] });
    expect((await wider.exec({ argv: ["id"] })).exitCode).toBe(0);
    await wider.teardown();
    await expect(openSandbox({ backend: "local", id: made.id, network: "full" })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining('the sandbox was made with "none"'),
    });
    await expect(openSandbox({ backend: "local", id: made.id, limits: { pids: 5 } })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await removeSandbox(made.id);
  });

  test("is refused when what it mounts may not be mounted any more, and can be opened once that is mended", async () => {
    const source = join(scratch.path, "swapped");
    mkdirSync(source);
    const made = await openSandbox({ backend: "local", keep: true, mounts: [{ source, target: "/swapped" }] });
    await made.teardown();
    rmSync(source, { recursive: true });
    await expect(openSandbox({ backend: "local", id: made.id })).rejects.toMatchObject({ code: "not_found" });
    symlinkSync(scratch.home, source);
    await expect(openSandbox({ backend: "local", id: made.id })).rejects.toMatchObject({ code: "invalid_argument" });
    rmSync(source);
    mkdirSync(source);
    const again = await openSandbox({ backend: "local", id: made.id });
    await again.teardown();
    await removeSandbox(made.id);
  });
});

function structuredCloneWithout(options: SandboxOptions, path: string): SandboxOptions {
  const [name = "", key = ""] = path.split(".");
  const inner = { ...(options[name as keyof SandboxOptions] as Record<string, unknown>) };
  delete inner[key];
  return { ...options, [name]: inner };
}
