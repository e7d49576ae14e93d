import { existsSync, lstatSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text as readAll } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { NetworkEvent } from "../../contracts/types.js";
import { LearnedHosts } from "../../src/cli/learned-hosts.js";
import { Screen } from "../../src/cli/terminal.js";
import { createLocalSandbox } from "../../src/sandbox/backends/local.js";
import { egressInternals } from "../../src/sandbox/egress/open-egress.js";
import { blockedHost, explainBlocked } from "../../src/sandbox/egress/refusal.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { type Origin, startOrigin } from "../support/egress/origin.js";
import { createScratch, type Scratch } from "../support/scratch.js";
import { openTerminals, type TerminalRun, type Terminals } from "../support/terminal.js";

const NAME = "watched.test";
let scratch: Scratch;
let bench: Bench;
let origin: Origin;
let terminals: Terminals;

beforeAll(async () => {
  scratch = createScratch();
  bench = createBench(scratch);
  origin = await startOrigin();
  terminals = await openTerminals();
  egressInternals.route = { lookup: async () => ["127.0.0.1"], isReachable: (address) => address === "127.0.0.1" };
});

afterAll(async () => {
  delete egressInternals.route;
  await terminals[Symbol.asyncDispose]();
  origin.close();
  scratch.remove();
});

const open = (): Promise<Sandbox> => createLocalSandbox({ network: { allow: [`plain://${NAME}:${origin.port}`] } });
const curl = (sandbox: Sandbox, url: string): ReturnType<Sandbox["exec"]> =>
  sandbox.exec({ argv: ["curl", "-s", "-m", "20", url] });

describe("glovebox net", () => {
  it("shows from another process what a sandbox has reached, and what was blocked", async () => {
    await using sandbox = await open();
    await curl(sandbox, `http://${NAME}:${origin.port}/`);
    await curl(sandbox, `http://${NAME}:${origin.port}/`);
    await curl(sandbox, "http://evil.test/");
    const shown = await bench.run(["net", sandbox.id.slice(0, 12), "--json"]);
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    const rule = `plain://${NAME}:${origin.port}`;
    const [allowed, denied] = JSON.parse(shown.stdout) as { sent: number; received: number }[];
    expect(allowed).toMatchObject({ decision: "allowed", host: NAME, port: origin.port, rule, count: 2 });
    expect(allowed?.sent).toBeGreaterThan(100);
    expect(denied).toEqual({
      decision: "denied",
      host: "evil.test",
      port: 80,
      rule: "not_allowed",
      count: 1,
      sent: 0,
      received: 0,
    });
    const table = (await bench.run(["net", sandbox.id])).stdout;
    expect(table).toMatch(/^DECISION +HOST +RULE +COUNT +SENT +RECEIVED\n/);
    expect(table).toMatch(/denied +evil\.test:80 +not_allowed +1 /);
  });

  it("follows a sandbox until it is closed", async () => {
    const sandbox = await open();
    const running = bench.start(["net", sandbox.id, "--follow"]);
    const lines = bench.start(["net", sandbox.id, "-f", "--json"]);
    await curl(sandbox, `http://${NAME}:${origin.port}/`);
    await running.printed("close");
    await curl(sandbox, "http://evil.test/");
    await running.printed("blocked");
    await lines.printed("blocked");
    await sandbox.teardown();
    const { code, stdout } = await running.ended;
    const where = `${NAME}:${origin.port}`;
    expect(stdout.split("\n")).toEqual([
      expect.stringMatching(new RegExp(`^\\d\\d:\\d\\d:\\d\\d open    ${where} allowed by plain://${where}$`)),
      expect.stringMatching(new RegExp(`^\\S+ close   ${where} sent \\d+ B, received \\d+ B, \\d+\\.\\d s$`)),
      expect.stringMatching(/^\S+ blocked evil\.test:80 not_allowed$/),
      "",
    ]);
    const json = await lines.ended;
    const events = json.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as NetworkEvent);
    expect(events.map(({ event }) => event)).toEqual(["open", "close", "blocked"]);
    expect([code, json.code]).toEqual([0, 0]);
  });

  it("says when there is nothing to show, and what is wrong", async () => {
    await using sandbox = await open();
    expect(await bench.run(["net", sandbox.id])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringContaining("no connection"),
    });
    expect(await bench.run(["net", "unknown"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("No sandbox with the id or name"),
    });
    expect(await bench.run(["net"])).toMatchObject({ code: 2 });
    expect(await bench.run(["net", "--sets", sandbox.id])).toMatchObject({ code: 2 });
  });

  it("lists sets of names; those of package managers come from the user's own configuration", async () => {
    writeFileSync(join(bench.path, ".npmrc"), "registry=https://packages.acme.example/npm/\n");
    const { code, stdout } = await bench.run(["net", "--sets", "--json"]);
    expect(code).toBe(0);
    const sets = JSON.parse(stdout) as { name: string; allow: string[] }[];
    expect(sets).toContainEqual({ name: "claude-code", for: "agents", allow: ["api.anthropic.com"] });
    expect(sets).toContainEqual({ name: "npm", for: "packages", allow: ["packages.acme.example"] });
  });
});

describe("a set of names in --network", () => {
  it("stands for its hosts, and says which", async () => {
    const script =
      "for h in api.anthropic.com evil.test own.test; do curl -s -o /dev/null -w '%{http_code} ' http://$h/; done";
    const { stdout, stderr } = await bench.run([
      "exec",
      "--network",
      "allow=own.test,@claude-code",
      "--",
      "sh",
      "-c",
      script,
    ]);
    expect(stderr).toContain("glovebox: @claude-code is api.anthropic.com\n");
    expect(stdout.split(" ")[1]).toBe("403");
    for (const at of [0, 2]) expect(stdout.split(" ")[at]).not.toBe("403");
  });

  it("that there is not is refused", async () => {
    expect(await bench.run(["exec", "--network", "allow=@claude-cod", "--", "true"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("did you mean @claude-code?"),
    });
  });
});

describe("exec --audit", () => {
  it("adds lines to a file", async () => {
    const file = join(scratch.path, "audit.jsonl");
    await bench.run(["exec", "--network", "allow=own.test", "--audit", file, "--", "curl", "-s", "http://evil.test/"]);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ version: 1, event: "blocked", host: "evil.test" });
    expect(lstatSync(file).mode & 0o777).toBe(0o600);
  });
});

describe("exec --learn", () => {
  const script = `for url in https://b.test/ http://a.test/x https://a.test:8443/ http://127.0.0.1/ http://10.0.0.1/ http://intranet/; do
      curl -s -o /dev/null -m 20 "$url"; done; curl -s -o /dev/null -X POST http://a.test/`;
  const learn = (file: string, ...more: string[]): ReturnType<Bench["run"]> =>
    bench.run(["exec", "--learn", file, ...more, "--", "sh", "-c", script]);

  it("writes what a command asked for, as rules, and nothing that can't be allowed", async () => {
    const file = join(scratch.path, "learned.yaml");
    const { stderr } = await learn(file);
    expect(stderr).toContain("it asked for 3 hosts");
    const text = readFileSync(file, "utf8");
    expect(parse(text)).toEqual({ allow: ["a.test:80", "a.test:8443", "b.test:443"] });
    expect(text).toContain('"a.test:80" # GET, POST\n');
    const codes = "for h in a.test c.test; do curl -s -o /dev/null -w '%{http_code} ' http://$h/; done";
    const { stdout } = await bench.run(["exec", "--network", `@${file}`, "--", "sh", "-c", codes]);
    expect(stdout).toBe("502 403 ");
  });

  it("a name that led to a private address is no rule: with --network it would stay blocked", async () => {
    const file = join(scratch.path, "private.yaml");
    const stderr = new PassThrough();
    const learned = new LearnedHosts(file, false);
    for (const host of ["wiki.example.org", "packages.example.org"]) {
      learned.add({ host, port: 443, reason: "not_allowed" });
    }
    learned.hear(explainBlocked(blockedHost("wiki.example.org", 443, "not_public")));
    learned.hear(explainBlocked(blockedHost("packages.example.org", 443, "name_mismatch")));
    await learned.write(new Screen(new PassThrough(), stderr, {}));
    const written = readFileSync(file, "utf8");
    expect(parse(written)).toEqual({ allow: ["packages.example.org:443"] });
    const left = written.split("\n").find((line) => line.includes("wiki.example.org"));
    expect(parse(left?.replace(/^# */, "") ?? "")).toEqual([{ host: "wiki.example.org", port: 443, private: true }]);
    stderr.end();
    expect(await readAll(stderr)).toContain("it asked for 2 hosts, of which 1 has no public address and is left out");
  });

  it("never replaces a file without --force, and follows no link", async () => {
    const [file, target, dangling] = ["mine", "target", "dangling"].map((name) => join(scratch.path, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(file, "mine");
    writeFileSync(target, "target");
    const started = join(scratch.path, "started");
    const refused = await bench.run([
      "exec",
      "--learn",
      file,
      "--mount",
      `${scratch.path}:/mounted:rw`,
      "--",
      "touch",
      "/mounted/started",
    ]);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("already exists") });
    expect([readFileSync(file, "utf8"), existsSync(started)]).toEqual(["mine", false]);
    symlinkSync(join(scratch.path, "nowhere"), dangling);
    expect(await learn(dangling)).toMatchObject({ code: 1 });
    expect(existsSync(join(scratch.path, "nowhere"))).toBe(false);
    const link = join(scratch.path, "link");
    symlinkSync(target, link);
    expect((await learn(link, "--force")).stderr).toContain("asked for 3 hosts");
    expect([readFileSync(target, "utf8"), lstatSync(link).isFile()]).toEqual(["target", true]);
  });

  it.each([
    [["--network", "full"], 2, /does not go together with --network/],
    [["--ask"], 2, /--ask does not go together with --learn/],
    [["--isolation", "none"], 1, /without isolation/],
  ])("is refused with %j", async (more, code, stderr) => {
    const file = join(scratch.path, "refused.yaml");
    expect(await learn(file, ...more)).toMatchObject({ code, stderr: expect.stringMatching(stderr) });
    expect(existsSync(file)).toBe(false);
  });
});

describe("exec --ask", () => {
  const ask = (script: string, ...more: string[]): Promise<TerminalRun> =>
    terminals.run([process.execPath, program, "exec", "--ask", ...more, "--", "sh", "-c", script], {
      ...bench.env,
      TERM: "xterm",
    });
  /** Blocked is 403. A name that may be reached, but does not exist, is 502. */
  const code = (host: string): string => `curl -s -o /dev/null -w '%{http_code}\\n' http://${host}/path?query`;
  const question = (host: string): string => `the command wants to reach ${host}:80 (GET /path). Allow it?`;

  it("asks about each host: once, always or no", async () => {
    const run = await ask(
      `${code("a.test")}; ${code("a.test")}; ${code("b.test")}; ${code("b.test")}; ${code("c.test")}; ${code("c.test")}`,
    );
    let at = await run.shows(question("a.test"));
    await run.type("y\n");
    at = await run.shows("502", at);
    at = await run.shows(question("a.test"), at);
    await run.type("yes\n");
    at = await run.shows("502", at);
    at = await run.shows(question("b.test"), at);
    await run.type("always\n");
    at = await run.shows("502", await run.shows("b.test:80 is allowed from now on", at));
    at = await run.shows("502", at);
    at = await run.shows(question("c.test"), at);
    await run.type("\n");
    at = await run.shows("403", await run.shows("c.test:80 stays blocked", at));
    await run.shows("403", at);
    const { exitCode, output } = await run.ended;
    expect(exitCode).toBe(0);
    expect(output.split("Allow it?")).toHaveLength(5);
  });

  it("holds the output of the command back while it asks", async () => {
    const shared = join(scratch.path, "shared");
    mkdirSync(shared);
    const script = `${code("a.test")} & until [ -e /shared/go ]; do sleep 0.05; done; echo below; touch /shared/written; wait`;
    const run = await ask(script, "--mount", `${shared}:/shared:rw`);
    const at = await run.shows(question("a.test"));
    writeFileSync(join(shared, "go"), "");
    await expect.poll(() => existsSync(join(shared, "written"))).toBe(true);
    await run.type("n\n");
    const { output } = await run.ended;
    expect(output.slice(at)).toMatch(/stays blocked\r\n[\s\S]*below\r\n/);
    expect(output.slice(0, at)).not.toContain("below");
    expect(output).toContain("403");
  });

  it("needs a terminal, and a network that can be asked about", async () => {
    expect(await bench.run(["exec", "--ask", "--", "true"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--ask needs a terminal"),
    });
    const { output, exitCode } = await (await ask("true", "--network", "full")).ended;
    expect([exitCode, output]).toEqual([2, expect.stringContaining("--ask does not go together with --network full")]);
  });
});
