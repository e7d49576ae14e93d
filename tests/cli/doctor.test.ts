import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Finding } from "../../contracts/finding.js";
import { toAgentFinding } from "../../src/cli/verbs/doctor/agents.js";
import { type BackendRow, toBackendRow } from "../../src/cli/verbs/doctor/backend-row.js";
import { credentialFindings, GITHUB } from "../../src/cli/verbs/doctor/credentials.js";
import { nodeFinding } from "../../src/cli/verbs/doctor/machine.js";
import type { InstalledAgent } from "../../src/harness.js";
import { namespaceFinding } from "../../src/sandbox/backends/local/probe-namespaces.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { openTerminals } from "../support/terminal.js";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

interface Report {
  default: string;
  works: boolean;
  sections: { name: string; findings: Finding[] }[];
}

async function examine(env: Record<string, string> = {}): Promise<Report & { code: number | null }> {
  const { code, stdout } = await bench.run(["doctor", "--json"], { env });
  return { code, ...(JSON.parse(stdout) as Report) };
}

function finding(report: Report, section: string, name: string): Finding | undefined {
  return report.sections.find((each) => each.name === section)?.findings.find((each) => each.name === name);
}

const SETS = [["VERCEL_OIDC_TOKEN"], ["VERCEL_TOKEN", "VERCEL_TEAM_ID", "VERCEL_PROJECT_ID"]];

it.each<[string, InstalledAgent, Finding]>([
  [
    "that is not there",
    { name: "pi", tried: ["1.0.0", "2.0.0"], install: "npm install -g pi" },
    { name: "pi", status: "unused", detail: "not installed; tried: 1.0.0, 2.0.0", fix: "npm install -g pi" },
  ],
  [
    "that is fine",
    { name: "pi", path: "/bin/pi", version: "2.0.0", tried: ["1.0.0"], install: "x" },
    { name: "pi", status: "ok", detail: "2.0.0 in /bin/pi; tried: 1.0.0" },
  ],
])("an agent %s is one row", (_, agent, row) => {
  expect(toAgentFinding(agent)).toEqual(row);
});

describe("glovebox doctor", () => {
  it("finds the default backend working here, by sandboxes that it opened and took away", async () => {
    const report = await examine();
    expect(report).toMatchObject({ code: 0, default: "local", works: true });
    for (const name of ["user namespaces", "bubblewrap", "guest", "git", "self-test", "seccomp", "privileges"]) {
      expect(finding(report, "local", name)).toMatchObject({ name, status: "ok" });
    }
    expect(finding(report, "local", "bubblewrap")?.detail).toMatch(/^\d+\.\d+.* in \/.*bwrap$/);
    expect(report.sections.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["machine", "local", "docker", "daytona", "vercel", "github"]),
    );
    expect(await bench.settled()).toEqual([]);
  });

  it("names credentials and never shows one", async () => {
    const secret = "ghp_0123456789abcdefSECRET";
    const nobody = "http://127.0.0.1:9/api";
    const env = { GITHUB_TOKEN: secret, DAYTONA_API_KEY: secret, DAYTONA_API_URL: nobody };
    const { stdout } = await bench.run(["doctor", "--all"], { env });
    expect(stdout).toMatch(/github\n +ok +credentials +GITHUB_TOKEN is set/);
    expect(stdout).toMatch(/ok +credentials +DAYTONA_API_KEY is set/);
    expect(stdout).not.toContain(secret);
  });

  it("is a screenful: a line for each backend, and in full only what stops the default one", async () => {
    const terminals = await openTerminals();
    try {
      for (const [backend, code] of [
        ["local", 0],
        ["vercel", 1],
      ] as const) {
        const env = { ...bench.env, TERM: "dumb", GLOVEBOX_BACKEND: backend };
        const { output, exitCode } = await (await terminals.run([process.execPath, program, "doctor"], env)).ended;
        expect(exitCode).toBe(code);
        // After a second there is a line that moves, and erases itself.
        const lines = output
          .trimEnd()
          .split("\r\n")
          .map((line) => line.slice(line.lastIndexOf("\u001b[2K") + 1).replace("[2K", ""));
        const broken = lines.findIndex((line) => line.startsWith("What stops"));
        const verdict = lines.findIndex((line) => line.startsWith("The default backend"));
        // A fix that is wider than the screen is not cut: it is there to be typed.
        const cut = broken === -1 ? lines : [...lines.slice(0, broken), ...lines.slice(verdict)];
        expect(Math.max(...cut.map((line) => line.length))).toBeLessThan(80);
        expect(lines.reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / 80)), 0)).toBeLessThan(24);
        for (const name of ["machine", "local", "daytona", "docker", "vercel", "dagger", "kubernetes", "github"]) {
          expect(output).toMatch(new RegExp(`^ {2}${name} +(ok|works|not ready|limited|missing|unused) `, "m"));
        }
        expect(output.includes("What stops vercel\r\n  credentials: ")).toBe(backend === "vercel");
      }
    } finally {
      await terminals[Symbol.asyncDispose]();
    }
  });

  it("shows one backend in full, and exits by that one", async () => {
    const local = await bench.run(["doctor", "local"], { env: { GLOVEBOX_BACKEND: "vercel" } });
    expect(local.code).toBe(0);
    expect(local.stdout).toMatch(/^local\n(?: .*\n)* +ok +self-test /m);
    expect(local.stdout).toMatch(/^ {2}network +none full allow$/m);
    expect(local.stdout).toMatch(/The backend local works\.\n$/);
    expect(local.stdout).not.toContain("daytona");
    const json = JSON.parse((await bench.run(["doctor", "vercel", "--json"])).stdout) as Report;
    expect(json).toMatchObject({ default: "local", works: false });
    expect(json.sections.map(({ name }) => name)).toEqual(["machine", "vercel"]);
    const unknown = await bench.run(["doctor", "lcoal"]);
    expect(unknown.code).toBe(1);
    expect(unknown.stdout).toContain('did you mean "local"?');
  });

  it("says so, with the way out and exit code 1, when the default backend does not work", async () => {
    const report = await examine({ GLOVEBOX_BACKEND: "vercel" });
    expect(report).toMatchObject({ code: 1, default: "vercel", works: false });
    expect(finding(report, "vercel", "credentials")).toMatchObject({
      status: "missing",
      fix: expect.stringContaining("VERCEL_TOKEN") as string,
    });
    const { code, stdout } = await bench.run(["doctor", "--all"], { env: { GLOVEBOX_BACKEND: "./nowhere.mjs" } });
    expect(code).toBe(1);
    const columns =
      "backend +installed +credentials +reachable +isolation +limits +network +paths +snapshot +fork +conformance";
    expect(stdout).toMatch(new RegExp(`^${columns}$`, "m"));
    for (const name of ["local", "daytona", "docker", "vercel", "dagger"]) {
      expect(stdout).toMatch(
        new RegExp(`^${name} +(yes|no) .*never run\\n( .*\\n)* +fix conformance: .*--conformance ${name}$`, "m"),
      );
    }
    expect(stdout).toContain("The default backend, ./nowhere.mjs, does not work.");
    expect(stdout).toMatch(/^\.\/nowhere\.mjs \(default\)\n.*\n +fix: unset GLOVEBOX_BACKEND$/m);
  });

  it("shows the version of each agent, and the versions that were tried", async () => {
    const bin = join(bench.path, "agents-bin");
    mkdirSync(bin);
    const put = (name: string, script: string): void =>
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    put("claude", "echo '2.1.200 (Claude Code)'");
    put("codex", 'test -z "$OPENAI_API_KEY" && echo codex-cli 999.0.0');
    put("gemini", "echo 0.1.0");
    put("pi", "exit 1");
    const env = { PATH: `${bin}:${process.env["PATH"] ?? ""}`, OPENAI_API_KEY: "sk-0123456789" };
    const report = await examine(env);
    const about = (name: string): Finding | undefined => finding(report, "agents", name);
    expect(about("claude-code")).toEqual({
      name: "claude-code",
      status: "limited",
      detail: `claude-code 2.1.200 is older than 2.1.327, the oldest version that was tried; in ${join(bin, "claude")}`,
      fix: "npm install -g @anthropic-ai/claude-code",
    });
    expect(about("codex")).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/^999\.0\.0 in .*; tried: 0\.1/) as string,
    });
    expect(about("gemini-cli")).toMatchObject({
      status: "limited",
      detail: expect.stringContaining("0.1.0 is too old") as string,
    });
    expect(about("pi")).toMatchObject({
      status: "limited",
      detail: expect.stringContaining("does not print its version") as string,
    });
    expect(report.code).toBe(0);
    const short = await bench.run(["doctor"], { env });
    expect(short.stdout).toMatch(/^ {2}agents +limited +claude-code 2\.1\.200 is older/m);
  });

  it("finds a machine that cannot make a work directory", async () => {
    const report = await examine({ TMPDIR: join(bench.path, "not-there") });
    expect(report.code).toBe(1);
    expect(finding(report, "machine", "temporary files")).toMatchObject({ status: "missing" });
    const fix = expect.stringContaining("TMPDIR") as string;
    expect(finding(report, "local", "self-test")).toMatchObject({ status: "missing", fix });
    expect(finding(report, "local", "limits")?.fix ?? "").not.toContain("mount");
    const env = { TMPDIR: join(bench.path, "not-there") };
    for (const args of [
      ["exec", "--", "true"],
      ["doctor", "--conformance", "local"],
    ]) {
      const { code, stderr } = await bench.run(args, { env });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^glovebox: .*not-there.*\nhint: .*TMPDIR.*\n$/);
    }
  });

  it("runs the conformance kit and prints the table", async () => {
    const { code, stdout } = await bench.run([
      "doctor",
      "--conformance",
      "local",
      "--only",
      "exec.argv,user.switch,restore.files",
    ]);
    expect(stdout).toMatch(/^conformance of local\n/);
    expect(stdout).toMatch(/^passed {3}exec\.argv\./m);
    expect(stdout).toMatch(/^skipped {2}user\.switch /m);
    expect(stdout).toMatch(/\nlocal: \d+ passed, 0 failed, \d+ skipped\n$/);
    expect(code).toBe(0);
    expect(await bench.settled()).toEqual([]);
    expect((await bench.run(["snapshots", "-q"])).stdout).toBe("");
  });

  it("holds a backend of somebody else's to the kit, and says where it fails", async () => {
    const path = join(bench.path, "broken.mjs");
    const module = `export const backend = {
      name: "broken",
      capabilities: () => ({ isolation: "remote", killTree: "best-effort", network: ["full"], limits: [], snapshot: "none",
        fork: "none", pty: false, user: false, ports: false, git: false }),
      create: async () => { throw new Error("no sandbox today"); },
      removeResource: async () => undefined,
    };`;
    writeFileSync(path, module);
    const { code, stdout } = await bench.run(["doctor", "--conformance", path, "--json", "--only", "exec.argv"]);
    expect(code).toBe(1);
    const report = JSON.parse(stdout) as { passed: number; failed: number; results: { reason?: string }[] };
    expect(report.passed).toBe(0);
    expect(report.failed).toBeGreaterThan(0);
    expect(report.results[0]?.reason).toContain("no sandbox today");
  });

  it.each([1, 2])("leaves nothing when the kit is interrupted, signals: %i", async (signals) => {
    const run = bench.start(["doctor", "--conformance", "local"]);
    await expect.poll(() => bench.leftovers().length).toBeGreaterThanOrEqual(4);
    for (let sent = 0; sent < signals; sent++) {
      run.child.kill("SIGINT");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await run.ended).toMatchObject({ code: 130, stdout: "" });
    expect((await bench.run(["reap"])).code).toBe(0);
    expect(await bench.settled()).toEqual([]);
  });
});

describe("the row of a backend", () => {
  const ok = (name: string): Finding => ({ name, status: "ok", detail: "" });
  const missing = (name: string): Finding => ({ name, status: "missing", detail: "", fix: `mend ${name}` });
  const note = { on: "this machine", time: "2026-01-02T03:04:05.678Z", counts: { passed: 5, refused: 1 } };

  it.each<[string, Finding[], Partial<BackendRow>]>([
    ["all is well", [ok("installed"), ok("credentials"), ok("reachable")], { credentials: "yes", reachable: "yes" }],
    ["no package", [missing("package")], { installed: "no", credentials: "not needed", reachable: "no" }],
    ["no bubblewrap", [ok("system"), missing("bubblewrap")], { installed: "no" }],
    ["no credentials", [ok("installed"), missing("credentials")], { credentials: "no", reachable: "no" }],
    ["no answer", [ok("package"), missing("account")], { installed: "yes", reachable: "no" }],
    ["not tried", [ok("package"), { ...missing("engine"), status: "unused" }], { reachable: "not tried" }],
    ["few limits", [{ ...missing("limits"), status: "limited" }], { reachable: "yes" }],
  ])("%s", (_, findings, cells) => {
    const row = toBackendRow("some", findings, undefined, note);
    expect(row).toMatchObject({ installed: "yes", isolation: "-", ...cells });
    expect(row.conformance).toBe("5 passed, 1 refused (2026-01-02, this machine)");
    const mended = findings.filter(({ fix }) => fix !== undefined).map(({ fix }) => fix);
    expect(row.fixes.map(({ fix }) => fix)).toEqual(mended);
  });

  it("tells how the kit is run where it never was, or failed", () => {
    const fixes = [{ of: ["conformance"], fix: "glovebox doctor --conformance some" }];
    expect(toBackendRow("some", [], undefined, undefined)).toMatchObject({ conformance: "never run", fixes });
    const failed = { ...note, counts: { passed: 5, failed: 2 } };
    expect(toBackendRow("some", [], undefined, failed)).toMatchObject({ fixes });
  });
});

describe("what is looked at", () => {
  const settings = (values: Record<string, string>) => (path: string) => values[path];

  it.each([
    [{}, false, "missing", undefined],
    [{ "/proc/sys/user/max_user_namespaces": "0\n" }, true, "missing", "sudo sysctl -w user.max_user_namespaces=16384"],
    [{ "/proc/sys/user/max_user_namespaces": "100\n" }, false, "ok", undefined],
    [
      {
        "/proc/sys/user/max_user_namespaces": "100\n",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
      },
      false,
      "missing",
      "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ],
    [
      { "/proc/sys/user/max_user_namespaces": "9", "/proc/sys/kernel/unprivileged_userns_clone": "0" },
      false,
      "missing",
      "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ],
    [
      { "/proc/sys/user/max_user_namespaces": "9", "/proc/sys/kernel/unprivileged_userns_clone": "0" },
      true,
      "ok",
      undefined,
    ],
  ] as const)("the switches of user namespaces: %j, root %s", (values, isRoot, status, fix) => {
    const found = namespaceFinding(settings(values), isRoot);
    expect(found.status).toBe(status);
    if (fix !== undefined) expect(found.fix).toBe(fix);
  });

  it("the version of Node", () => {
    expect(["20.18.3", "20.19.0", "22.1.0", "18.20.0"].map((version) => nodeFinding(version).status)).toEqual([
      "missing",
      "ok",
      "ok",
      "missing",
    ]);
  });

  it("credentials, all that belong together", () => {
    expect(credentialFindings(SETS, { VERCEL_TOKEN: "x" })[0]).toMatchObject({
      status: "unused",
      detail: "only VERCEL_TOKEN is set, which is not enough",
    });
    const complete = { VERCEL_TOKEN: "x", VERCEL_TEAM_ID: "y", VERCEL_PROJECT_ID: "z" };
    expect(credentialFindings(SETS, complete)[0]?.status).toBe("ok");
    expect(credentialFindings(GITHUB, { GITHUB_TOKEN: "" })[0]?.status).toBe("unused");
  });
});
