import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDaytonaSandbox } from "../../../../src/sandbox/backends/daytona.js";
import { listSandboxes, removeSandbox } from "../../../../src/sandbox.js";
import { type DaytonaService, setEnv, startDaytonaService } from "../../../support/daytona/service.js";

let there: DaytonaService;
beforeAll(async () => {
  there = await startDaytonaService();
});
afterAll(() => there.close());

describe("creation", () => {
  test("[S4-AC-1] [S4-AC-18] one sandbox of the default snapshot, gone when it stops, labelled, with a hard end", async () => {
    await using sandbox = await there.open();
    const { asked, labels } = there.service.entry(`glovebox-${sandbox.id}`);
    expect(asked).toMatchObject({
      snapshot: "daytona-medium",
      autoStopInterval: 30,
      autoDeleteInterval: 0,
      ttlMinutes: 1440,
    });
    expect(labels).toMatchObject({ glovebox: "sandbox", "glovebox-id": sandbox.id });
    expect(labels["glovebox-owner"]).toContain(`/${process.pid}/`);
    expect((await sandbox.exec({ argv: ["echo", "hello"] })).stdout).toBe("hello\n");
  });

  test("the service gets ttl and idleTimeout too, in whole minutes, for every machine of the sandbox and its forks", async () => {
    await using sandbox = await there.open({ keep: true, ttl: 5 * 60_000 + 30_000, idleTimeout: 90_000 });
    const lifetime = { autoStopInterval: 2, ttlMinutes: 6 };
    expect(there.service.entry(`glovebox-${sandbox.id}`).asked).toMatchObject(lifetime);
    await using fork = await sandbox.fork();
    expect(there.service.entry(`glovebox-${fork.id}`).asked).toMatchObject({ autoStopInterval: 2 });
    expect(there.service.entry(`glovebox-${fork.id}`).asked["ttlMinutes"]).toBeLessThanOrEqual(6);
    const known = await listSandboxes();
    const ends = [sandbox, fork].map(({ id }) => known.find((each) => each.id === id)?.expiresAt);
    expect(ends[0]).toMatch(/Z$/);
    expect(ends[1]).toBe(ends[0]);
    for (const each of [sandbox, fork]) {
      await each.teardown();
      await removeSandbox(each.id);
    }
  });

  test("[S4-AC-2] [S4-AC-12] [S4-AC-25] the default branch is cloned by token, the branch of the run is made there", async () => {
    const before = there.service.requests.length;
    await using sandbox = await there.openRepo({ daytona: { snapshot: "daytona-small" } });
    expect(sandbox.workDir).toBe("/home/daytona/workspace/widgets");
    expect((await sandbox.shell("git branch --show-current; cat a.txt")).stdout).toBe("run-1\none more\n");
    const calls = there.service.requests.slice(before).map((line) => line.replace(/\/toolbox\/[^/]+/, ""));
    expect(calls.filter((line) => /git|sandbox|home-dir/.test(line))).toEqual([
      "POST /api/sandbox",
      "GET /user-home-dir",
      "POST /git/clone",
      "POST /git/branches",
    ]);
    expect(there.service.entry(`glovebox-${sandbox.id}`).asked["snapshot"]).toBe("daytona-small");
    const { machine, processes } = there.service.entry(`glovebox-${sandbox.id}`);
    // The token is nowhere inside: in no file, and in no command.
    const hunt = spawnSync("grep", ["-rlF", there.token, machine.root]);
    expect([hunt.status, hunt.stdout.toString()]).toEqual([1, ""]);
    const commands = [...processes.sessions.values()].flatMap((session) => [...session.commands.values()]);
    expect(commands.length).toBeGreaterThan(0);
    expect(JSON.stringify(commands.map(({ command }) => command))).not.toContain(there.token);
  });

  test("[S4-AC-2] the clone is where the user of the machine is at home", async () => {
    there.service.habits.faults = [{ match: /user-home-dir/, action: { status: 200, body: { dir: "/tmp/somebody" } } }];
    await using sandbox = await there.openRepo();
    expect(sandbox.workDir).toBe("/tmp/somebody/workspace/widgets");
    expect((await sandbox.shell("pwd; echo $HOME; cat a.txt")).stdout).toBe(
      `${sandbox.workDir}\n/tmp/somebody\none more\n`,
    );
  });

  test("[S4-AC-20] a clone that fails leaves no sandbox, and the error says why without the token", async () => {
    const wrong = "ghp_wrongwrongwrongwrong";
    await expect(there.openRepo({ githubToken: wrong })).rejects.toMatchObject({
      code: "unauthenticated",
      backend: "daytona",
    });
    await expect(there.openRepo({ githubToken: wrong })).rejects.not.toThrow(wrong);
    await expect(there.openRepo({ repo: "acme/nothing" })).rejects.toMatchObject({ code: "not_found" });
    expect([...there.service.sandboxes.values()].filter(({ state }) => state === "started")).toEqual([]);
    expect(await listSandboxes()).toEqual([]);
  });

  test("a network rule holds once the repository is there", async () => {
    await using sandbox = await there.openRepo({ network: "none" });
    const { networkBlockAll, asked } = there.service.entry(`glovebox-${sandbox.id}`);
    expect([asked["networkBlockAll"], networkBlockAll]).toEqual([undefined, true]);
    await using named = await there.open({ network: { allow: ["example.org", "*.example.net"] } });
    expect(there.service.entry(`glovebox-${named.id}`).asked["domainAllowList"]).toBe("example.org,*.example.net");
    await using numbered = await there.openRepo({ network: { allow: ["1.1.1.1", "8.8.8.8"] } });
    expect(there.service.entry(`glovebox-${numbered.id}`).networkAllowList).toBe("1.1.1.1/32,8.8.8.8/32");
  });

  test("a rule that the service seems to take and does not have is no sandbox", async () => {
    const refusal = { code: "unsupported", message: expect.stringContaining("did not get its network rule") };
    const action = { status: 200, body: { id: "x", name: "x", state: "started", networkBlockAll: false } };
    there.service.habits.faults = [{ match: /network-settings/, action }];
    await expect(there.openRepo({ network: "none" })).rejects.toMatchObject(refusal);
    there.service.habits.ignoresNetwork = true;
    await expect(there.open({ network: { allow: ["example.org"] } })).rejects.toMatchObject(refusal);
    there.service.habits.ignoresNetwork = false;
    expect([...there.service.sandboxes.values()].filter(({ state }) => state === "started")).toEqual([]);
    expect(await listSandboxes()).toEqual([]);
  });

  test("an account that cannot choose its network is told so, and nothing is left", async () => {
    there.service.habits.fixedNetwork = true;
    try {
      const refusal = { code: "unsupported", message: expect.stringContaining("fixed for your tier") };
      await expect(there.open({ network: "none" })).rejects.toMatchObject(refusal);
      await expect(there.openRepo({ network: "none" })).rejects.toMatchObject(refusal);
    } finally {
      there.service.habits.fixedNetwork = false;
    }
    expect(await listSandboxes()).toEqual([]);
  });
});

describe("use", () => {
  test("[S4-AC-3] [S4-AC-4] [S4-AC-24] commands: directory, streams apart, confinement, names of variables", async () => {
    await using sandbox = await there.open();
    await sandbox.makeDirectory("sub");
    const script = "pwd; echo bad >&2; exit 3";
    expect(await sandbox.shell(script, { cwd: "sub" })).toMatchObject({
      exitCode: 3,
      stdout: `${sandbox.workDir}/sub\n`,
      stderr: "bad\n",
    });
    await expect(sandbox.exec({ argv: ["pwd"], cwd: "/etc" })).rejects.toMatchObject({ code: "path_confinement" });
    for (const key of ["A=B", "A B", "$(id)", "`id`", "A\nB", ""]) {
      const message = `Invalid env key "${key}" — must match [A-Za-z_][A-Za-z0-9_]*`;
      await expect(sandbox.exec({ argv: ["true"], env: { [key]: "x" } })).rejects.toThrow(message);
    }
  });

  test("what would end a session's own shell has its exact code", async () => {
    await using sandbox = await there.open();
    const codes = new Map([
      ["exit 3", 3],
      ["set -e; false; echo never", 1],
      ["exec sh -c 'exit 4'", 4],
      ["kill -TERM $$", 143],
      ["kill -SEGV $$", 139],
    ]);
    for (const [script, exitCode] of codes)
      expect([script, (await sandbox.shell(script)).exitCode]).toEqual([script, exitCode]);
    expect((await sandbox.exec({ argv: ["echo", "still there"] })).stdout).toBe("still there\n");
  });

  test("[S4-AC-5] [S4-AC-17] a deadline keeps what was said; a bound keeps head and tail", async () => {
    await using sandbox = await there.open();
    const late = await sandbox.exec({ argv: ["sh", "-c", "printf begun; sleep 60"], timeout: 3_000 });
    expect(late).toMatchObject({ timedOut: true, exitCode: 137, stdout: "begun" });
    const much = await sandbox.exec({ argv: ["seq", "100000"], maxOutput: 1_000 });
    expect(much).toMatchObject({ exitCode: 0, truncated: { stdout: true }, bytes: { stdout: 588_895 } });
    expect(much.stdout.length).toBeLessThan(1_200);
  });

  test("output is exact, whatever the service does to its logs", async () => {
    await using sandbox = await there.open();
    const script = "printf 'no end'; printf '\\001\\001\\001mark\\000\\377\\r' >&2";
    const { raw } = await sandbox.shell(script, { raw: true });
    expect(Buffer.from(raw?.stdout ?? []).toString()).toBe("no end");
    expect([...(raw?.stderr ?? [])]).toEqual([1, 1, 1, 109, 97, 114, 107, 0, 255, 13]);
  });

  test("[S4-AC-6] [S4-AC-7] many files are one upload; folders are made; what leads out is refused before anything", async () => {
    await using sandbox = await there.open();
    const { requests } = there.service;
    const before = requests.length;
    const files = Array.from({ length: 50 }, (_, i) => ({
      path: `deep/er/${i}`,
      content: `${i}`,
      mode: i % 2 ? 0o755 : 0o600,
    }));
    await sandbox.uploadFiles(files);
    expect(requests.slice(before).filter((line) => line.endsWith("bulk-upload"))).toHaveLength(1);
    expect(requests.length - before).toBeLessThanOrEqual(3);
    const folder = join(there.service.entry(`glovebox-${sandbox.id}`).machine.hostPath(sandbox.workDir), "deep", "er");
    expect([
      statSync(folder).mode & 0o777,
      statSync(join(folder, "1")).mode & 0o777,
      readFileSync(join(folder, "49"), "utf8"),
    ]).toEqual([0o755, 0o755, "49"]);
    const now = requests.length;
    await expect(sandbox.uploadFiles([{ path: "../out", content: "x" }])).rejects.toMatchObject({
      code: "path_confinement",
    });
    expect(requests.length).toBe(now);
  });

  test("names that uploads would trim, links that lists would leave out, contents that look like a path", async () => {
    await using sandbox = await there.open();
    const names = ["x ", " y", "new\nline", "quo'te\"", "ünï"];
    await sandbox.writeFiles(Object.fromEntries(names.map((name) => [name, `/etc/${name}`])));
    await sandbox.exec({ argv: ["ln", "-s", "nowhere", "dangling"] });
    expect(await sandbox.listDirectory()).toEqual([...names, "dangling"].sort());
    expect(await Promise.all(names.map((name) => sandbox.readFile(name)))).toEqual(names.map((name) => `/etc/${name}`));
    expect(await sandbox.deleteFile("x ")).toBe(true);
    expect(await sandbox.readFile("x")).toBeNull();
  });

  test("[S4-AC-9] [S4-AC-10] teardown waits until the sandbox is deleted, and may be called again", async () => {
    const sandbox = await there.open();
    const { root } = there.service.entry(`glovebox-${sandbox.id}`).machine;
    there.service.habits.deleteMs = 300;
    await sandbox.teardown();
    await sandbox.teardown();
    there.service.habits.deleteMs = 5;
    expect([
      existsSync(root),
      [...there.service.sandboxes.values()].some(({ name }) => name.endsWith(sandbox.id)),
    ]).toEqual([false, false]);
    expect(await listSandboxes()).toEqual([]);
  });

  test("DAYTONA_SIMPLE_EXEC=1 takes the plain way: one text, on both streams after a failure", async () => {
    await using sandbox = await there.open();
    const restore = setEnv({ DAYTONA_SIMPLE_EXEC: "1" });
    try {
      expect(await sandbox.shell("echo out; echo err >&2")).toMatchObject({
        exitCode: 0,
        stdout: "out\nerr\n",
        stderr: "",
      });
      expect(await sandbox.shell("echo why; exit 5")).toMatchObject({ exitCode: 5, stdout: "why\n", stderr: "why\n" });
      // The service would give the rest of the script to a command that reads, and has -1 for a signal.
      expect((await sandbox.shell("cat; echo after")).stdout).toBe("after\n");
      expect((await sandbox.shell("kill -9 $$")).exitCode).toBe(137);
      expect(await sandbox.exec({ argv: ["sleep", "30"], timeout: 500 })).toMatchObject({
        timedOut: true,
        exitCode: 137,
      });
      await expect(sandbox.exec({ argv: ["cat"], stdin: "x" })).rejects.toMatchObject({ code: "unsupported" });
    } finally {
      restore();
    }
  });

  test("an injected client is used and left open", async () => {
    const { Daytona } = await import("@daytona/sdk");
    const { apiUrl, apiKey } = there.service;
    const client = new Daytona({ apiUrl, apiKey, target: "us" });
    const opts = Object.freeze({ daytona: Object.freeze({ client, resources: Object.freeze({ cpu: 2 }) }) });
    const sandbox = await createDaytonaSandbox(opts);
    expect((await sandbox.exec({ argv: ["echo", "mine"] })).stdout).toBe("mine\n");
    await sandbox.teardown();
    expect(await client.list({ limit: 1 }).next()).toBeDefined();
    await client[Symbol.asyncDispose]();
  });
});
