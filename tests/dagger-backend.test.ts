import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { createServer, Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openSession } from "../src/sandbox/dagger/session.js";
import { createDaggerSandbox, probe } from "../src/sandbox/dagger.js";
import type { DaggerOptions, SandboxOptions } from "../src/sandbox/types.js";
import { deleteSnapshot, listSandboxes, listSnapshots, openSandbox, reap } from "../src/sandbox.js";
import { type DaggerEngine, startDaggerEngine } from "./fakes/dagger-engine.js";
import { expectRefused } from "./support/refused.js";
import { createRepository, createScratch, git, type Scratch } from "./support/scratch.js";

let engine: DaggerEngine;
let scratch: Scratch;
beforeAll(async () => {
  scratch = createScratch();
  engine = await startDaggerEngine();
});
afterAll(async () => {
  await engine.close();
  scratch.remove();
});

const sessionOf = ({ port, token }: DaggerEngine): { port: number; token: string } => ({ port, token });
const options = (dagger: DaggerOptions = {}, more: SandboxOptions = {}): SandboxOptions => ({
  ...more,
  dagger: { session: sessionOf(engine), ...dagger },
});
const steps = (): number => engine.graph.ran.filter(([, verb]) => verb === "dial").length;

/** A program that stands for the CLI: what it prints and does is the script's business. */
function fakeCli(name: string, script: string): string {
  const path = join(scratch.path, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Runs with these variables of the environment, and as before afterwards. */
async function withEnv<T>(env: Record<string, string | undefined>, work: () => Promise<T>): Promise<T> {
  const before = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  const set = (values: Record<string, string | undefined>): void => {
    for (const [name, value] of Object.entries(values)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  };
  set(env);
  try {
    return await work();
  } finally {
    set(before);
  }
}

describe("the graph", () => {
  test("without linger each operation is a step of its own, and what only reads leaves the container as it is", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    const before = steps();
    await sandbox.writeFile("a", "1");
    await sandbox.exec({ argv: ["sh", "-c", "echo 2 >> a"] });
    expect(steps() - before).toBe(2);
    expect(await sandbox.readFile("a")).toBe("12\n");
    expect(await sandbox.listDirectory()).toEqual(["a"]);
    const reads = engine.queries.filter((query) => query.includes("dial")).slice(-2);
    const [first, second] = reads.map((query) => /node \(id: "(.*?)"/.exec(query)?.[1]);
    expect(first).toBe(second);
  });

  test("what follows closely shares a step", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 5_000 }));
    const before = steps();
    for (const word of ["a", "b", "c"]) await sandbox.exec({ argv: ["touch", word] });
    expect(await sandbox.listDirectory()).toEqual(["a", "b", "c"]);
    expect(steps() - before).toBe(1);
  });

  test.each([["exit 128"], ["exit 137"], ["exit 191"], ["kill -9 $$"], ["exit 255"]])(
    "%s keeps the files",
    async (how) => {
      await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
      const result = await sandbox.shell(`echo kept > file; ${how}`);
      expect(result.exitCode).toBe(how.startsWith("kill") ? 137 : Number(how.slice(5)));
      expect(await sandbox.readFile("file")).toBe("kept\n");
    },
  );

  test("identical commands are run again, in one sandbox and in two", async () => {
    await using one = await createDaggerSandbox(options({ linger: 0 }));
    await using two = await createDaggerSandbox(options({ linger: 0 }));
    const argv = ["cat", "/proc/sys/kernel/random/uuid"];
    const said = [await one.exec({ argv }), await one.exec({ argv }), await two.exec({ argv })];
    expect(new Set(said.map(({ stdout }) => stdout)).size).toBe(3);
  });

  test("setup is answered from the cache, and one that fails says why", async () => {
    const setup = [["sh", "-c", "cat /proc/sys/kernel/random/uuid > /etc/stamp"]];
    await using one = await createDaggerSandbox(options({ setup }));
    await using two = await createDaggerSandbox(options({ setup }));
    const stamps = await Promise.all([one, two].map((sandbox) => sandbox.exec({ argv: ["cat", "/etc/stamp"] })));
    expect(stamps[0]?.stdout).toMatch(/-/);
    expect(stamps[0]?.stdout).toBe(stamps[1]?.stdout);
    const failing = createDaggerSandbox(options({ setup: [["sh", "-c", "echo no such package >&2; exit 3"]] }));
    await expectRefused(failing, "unavailable", "ended with 3", "no such package");
  });

  test("an engine that is gone is a lost backend, and teardown still works", async () => {
    const mortal = await startDaggerEngine();
    const sandbox = await createDaggerSandbox(options({ session: sessionOf(mortal) }));
    try {
      const begun = sandbox.exec({ argv: ["sleep", "60"] });
      const spawned = await sandbox.spawn({ argv: ["sh", "-c", "echo up; sleep 60"] });
      await spawned.stdout.getReader().read();
      mortal.crash();
      await expectRefused(begun, "backend_lost");
      await expectRefused(spawned.wait(), "backend_lost");
      await expectRefused(sandbox.exec({ argv: ["true"] }), "backend_lost");
    } finally {
      await sandbox.teardown();
      await mortal.close();
    }
    expect((await listSandboxes()).map(({ id }) => id)).not.toContain(sandbox.id);
  });

  test("an engine that throws a step away is a lost backend; a snapshot brings the sandbox back", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    await sandbox.writeFile("a", "old");
    const id = await sandbox.snapshot();
    // A step whose agent is killed inside ends with 137, of which an engine keeps nothing.
    const killed = sandbox.shell("kill -9 $(pidof agent 2>/dev/null || pgrep -f '[d]ial'); sleep 5");
    await expectRefused(killed, "backend_lost");
    await expectRefused(sandbox.readFile("a"), "backend_lost");
    await sandbox.restore(id);
    expect(await sandbox.readFile("a")).toBe("old");
  });

  test("what the engine says goes wrong is typed", async () => {
    await expectRefused(createDaggerSandbox(options({}, { image: "no-such-image" })), "not_found", "no-such-image");
    const other = await startDaggerEngine();
    other.fault(/version/, 502, "gone");
    await expectRefused(createDaggerSandbox(options({ session: sessionOf(other) })), "backend_lost", "does not answer");
    await expectRefused(
      createDaggerSandbox(options({ session: { ...sessionOf(other), token: "wrong" } })),
      "unauthenticated",
      "refused the token",
    );
    await other.close();
    await expectRefused(createDaggerSandbox(options({ session: sessionOf(other) })), "unavailable");
  });
});

describe("snapshots and forks", () => {
  test("a snapshot is brought back by another engine, and by this one as a whole", async () => {
    const sandbox = await createDaggerSandbox(options());
    await sandbox.shell("mkdir d; echo x > d/f; ln -s d/f link; echo outside > /etc/own");
    const id = await sandbox.snapshot();
    await sandbox.shell("rm -rf d link; echo mess > mess; rm /etc/own");
    await sandbox.restore(id);
    expect((await sandbox.shell("cat link /etc/own; ls")).stdout).toBe("x\noutside\nd\nlink\n");
    await sandbox.teardown();

    const second = await startDaggerEngine();
    try {
      const warnings: string[] = [];
      await using elsewhere = await createDaggerSandbox({
        ...options({ session: sessionOf(second) }),
        onEvent: ({ type, message }) => type === "warning" && warnings.push(message),
      });
      await elsewhere.writeFile("mess", "");
      await elsewhere.restore(id);
      expect((await elsewhere.shell("cat link; ls")).stdout).toBe("x\nd\nlink\n");
      expect(warnings.join()).toContain("Only the files in /work");
    } finally {
      await second.close();
    }
    expect((await listSnapshots()).map((snapshot) => snapshot.id)).toContain(id);
    await deleteSnapshot(id);
    expect(readdirSync(join(scratch.home, "snapshots")).filter((name) => name.startsWith(id))).toEqual([]);
  });

  test("a snapshot of another image is refused, and nothing is changed", async () => {
    await using first = await createDaggerSandbox(options({}, { image: "alpine:3" }));
    const id = await first.snapshot();
    const second = await startDaggerEngine();
    try {
      await using other = await createDaggerSandbox(options({ session: sessionOf(second) }));
      await other.writeFile("mine", "1");
      await expectRefused(other.restore(id), "conflict", "alpine:3");
      expect(await other.readFile("mine")).toBe("1");
    } finally {
      await second.close();
    }
  });

  test("a fork of an idle sandbox runs nothing; one of a busy sandbox has its files", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    await sandbox.writeFile("f", "1");
    const before = steps();
    const forks = await sandbox.fork({ count: 3 });
    expect(steps()).toBe(before);
    await forks[0]?.writeFile("f", "2");
    expect(await Promise.all([sandbox, ...forks].map((one) => one.readFile("f")))).toEqual(["1", "2", "1", "1"]);
    for (const one of forks) await one.teardown();

    await using child = await sandbox.spawn({ argv: ["sh", "-c", "echo live > g; echo up; sleep 60"] });
    await child.stdout.getReader().read();
    const id = await sandbox.snapshot();
    await sandbox.writeFile("f", "spoilt");
    await sandbox.restore(id);
    expect(await sandbox.readFile("f")).toBe("1");
    await using busy = await sandbox.fork();
    expect(await busy.readFile("g")).toBe("live\n");
  });

  test("a kept sandbox is opened again by another session, and reap leaves it", async () => {
    const sandbox = await createDaggerSandbox(options({ setup: [["touch", "/etc/ready"]] }, { keep: true }));
    await sandbox.writeFile("notes", "kept");
    await sandbox.teardown();
    expect((await reap({ backend: "dagger" })).kept).toContain(sandbox.id);
    const second = await startDaggerEngine();
    try {
      const again = await openSandbox({
        ...options({ session: sessionOf(second) }),
        backend: "dagger",
        id: sandbox.id,
      });
      expect(await again.readFile("notes")).toBe("kept");
      expect((await again.exec({ argv: ["ls", "/etc/ready"] })).exitCode).toBe(0);
      await again.teardown();
    } finally {
      await second.close();
    }
  });
});

describe("a repository", () => {
  test("has its files inside, its changes, its commits, snapshots and forks", async () => {
    const repo = createRepository(join(scratch.path, "repo"));
    const origin = join(scratch.path, "origin.git");
    git(scratch.path, "clone", "--quiet", "--bare", repo, origin);
    git(repo, "remote", "add", "origin", origin);
    await using sandbox = await createDaggerSandbox(options({}, { repo, branch: "work" }));
    expect(sandbox.capabilities.git).toBe(true);
    expect(await sandbox.readFile("a.txt")).toBe("one more\n");
    const own = { GIT_AUTHOR_NAME: "A", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "A", GIT_COMMITTER_EMAIL: "a@b" };
    const committed = await sandbox.shell(
      "echo new > new.txt && git add -A && git commit -qm inside && git log -1 --format=%s",
      {
        env: own,
      },
    );
    expect(committed).toMatchObject({ exitCode: 0, stdout: "inside\n" });
    await sandbox.writeFile("a.txt", "changed\n");
    const { files } = await sandbox.changes();
    expect(files).toEqual([
      { path: "a.txt", status: "modified" },
      { path: "new.txt", status: "added" },
    ]);
    const id = await sandbox.snapshot();
    await sandbox.shell("rm -rf * .git");
    await sandbox.restore(id);
    await using fork = await sandbox.fork();
    expect((await fork.shell("cat a.txt; git rev-parse --abbrev-ref HEAD; git log -1 --format=%s")).stdout).toBe(
      "changed\nwork-fork-1\ninside\n",
    );
    await deleteSnapshot(id);
    expect(await sandbox.defaultBranch?.()).toBe("main");
  });

  test("is there again when a kept sandbox is opened again", async () => {
    const repo = createRepository(join(scratch.path, "kept-repo"));
    const sandbox = await createDaggerSandbox(options({}, { repo, keep: true }));
    await sandbox.writeFile("a.txt", "kept\n");
    await sandbox.teardown();
    const again = await createDaggerSandbox(options({}, { id: sandbox.id, keep: false }));
    expect((await again.changes()).files).toEqual([{ path: "a.txt", status: "modified" }]);
    await again.teardown();
    expect((await listSandboxes()).map(({ id }) => id)).not.toContain(sandbox.id);
  });
});

describe("services and secrets", () => {
  test("a service is reached by its name inside and by its url outside", async ({ skip }) => {
    if (!existsSync("/usr/bin/busybox")) skip("not run: there is no busybox to serve with");
    const port = await freePort();
    const serve = `exec busybox httpd -f -p 127.0.0.1:${port} -h /srv`;
    const args = ["sh", "-c", `mkdir /srv; printf 'hello from %s' "$WHO" > /srv/index.html; ${serve}`];
    const web = { image: "alpine:3", args, env: { WHO: "web" }, ports: [port] };
    await using sandbox = await createDaggerSandbox(options({ services: { web } }));
    expect(sandbox.capabilities.ports).toBe(true);
    const inside = await sandbox.shell(`busybox wget -q -O - http://web:${port}/`);
    expect(inside.stdout).toBe("hello from web");
    expect(await fetchText((await sandbox.url?.(port)) ?? "")).toBe("hello from web");
    await expectRefused(sandbox.url?.(1) ?? Promise.resolve(), "not_found", "port 1");
  });

  test("secrets come from the engine, and env never gets into the graph", async () => {
    await withEnv({ DAGGER_TEST_SECRET: "s3cr3t-of-the-engine" }, async () => {
      const secrets = { API: "env://DAGGER_TEST_SECRET" };
      const env = { API_TOKEN: "token-of-the-caller" };
      await using sandbox = await createDaggerSandbox(options({ secrets }, { env }));
      const { stdout } = await sandbox.shell('echo "$API $API_TOKEN"; env');
      expect(stdout).toContain("s3cr3t-of-the-engine token-of-the-caller");
      expect(stdout).not.toContain("GLOVEBOX_");
      expect((await sandbox.exec({ argv: ["sh", "-c", "echo $API"], env: { API: "own" } })).stdout).toContain("own");
    });
    expect(engine.queries.join()).toContain("env://DAGGER_TEST_SECRET");
    expect(engine.queries.join()).not.toContain("s3cr3t-of-the-engine");
    expect(engine.queries.join()).not.toContain("token-of-the-caller");
  });
});

describe("the session", () => {
  const none = {
    DAGGER_SESSION_PORT: undefined,
    DAGGER_SESSION_TOKEN: undefined,
    _EXPERIMENTAL_DAGGER_CLI_BIN: undefined,
  };

  test("is the one that the environment names", async () => {
    const env = { ...none, DAGGER_SESSION_PORT: String(engine.port), DAGGER_SESSION_TOKEN: engine.token };
    await withEnv(env, async () => {
      await using sandbox = await openSandbox({ backend: "dagger" });
      expect((await sandbox.exec({ argv: ["pwd"] })).stdout).toBe("/work\n");
      const findings = await probe();
      expect(findings.find(({ name }) => name === "engine")).toMatchObject({ status: "ok" });
    });
  });

  test("is started by the program, shared, and ended with the last sandbox", async () => {
    const log = join(scratch.path, "cli.log");
    const line = JSON.stringify({ port: engine.port, session_token: engine.token });
    const cli = fakeCli("dagger", `echo "$$ $*" >> ${log}; echo '${line}'; cat >/dev/null; echo ended >> ${log}`);
    await withEnv({ ...none, PATH: `${scratch.path}:${process.env["PATH"]}` }, async () => {
      const [one, two] = await Promise.all([createDaggerSandbox({}), createDaggerSandbox({ dagger: { cli } })]);
      await one.teardown();
      expect((await two.exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
      const started = readFileSync(log, "utf8").trim().split("\n");
      expect(started).toHaveLength(1);
      expect(started[0]).toMatch(/^\d+ session /);
      await two.teardown();
      expect(isAlive(Number(started[0]?.split(" ")[0]))).toBe(false);
    });
  });

  test.each([
    ["ends at once", "echo no engine here >&2; exit 3", ["ended with exit code 3", "no engine here"]],
    ["prints no session", "echo hello; cat", ["printed something that is no session"]],
    ["prints a port that is none", `echo '{"port":"1","session_token":"t"}'; cat`, ["no session"]],
  ])("a program that %s is unavailable", async (name, script, words) => {
    const cli = fakeCli(`bad-${name.replaceAll(" ", "-")}`, script);
    await withEnv(none, () => expectRefused(createDaggerSandbox({ dagger: { cli } }), "unavailable", ...words));
  });

  test("without a program it is unavailable, with how to get one", async () => {
    mkdirSync(join(scratch.path, "empty"), { recursive: true });
    await withEnv({ ...none, PATH: join(scratch.path, "empty") }, async () => {
      await expect(createDaggerSandbox({})).rejects.toMatchObject({
        code: "unavailable",
        hint: expect.stringContaining("docs.dagger.io"),
      });
      expect((await probe()).find(({ name }) => name === "session")).toMatchObject({ status: "missing" });
    });
    await withEnv({ ...none, _EXPERIMENTAL_DAGGER_CLI_BIN: "/no/such/dagger" }, () =>
      expectRefused(createDaggerSandbox({}), "unavailable", "/no/such/dagger", "_EXPERIMENTAL_DAGGER_CLI_BIN"),
    );
  });

  test.each([
    ["a port that is no number", "12a", "token", "invalid_argument", "DAGGER_SESSION_PORT"],
    ["a port that is none", "70000", "token", "invalid_argument", "DAGGER_SESSION_PORT"],
    ["a port without a token", "4000", undefined, "unauthenticated", "DAGGER_SESSION_TOKEN"],
    ["a token without a port", undefined, "token", "unauthenticated", "DAGGER_SESSION_PORT"],
  ])("%s is refused before any request", async (_, port, token, code, word) => {
    const before = engine.queries.length;
    const env = { ...none, DAGGER_SESSION_PORT: port, DAGGER_SESSION_TOKEN: token };
    await withEnv(env, () => expectRefused(openSandbox({ backend: "dagger" }), code, word));
    expect(engine.queries.length).toBe(before);
  });

  test("who does not know the token of a step gets nothing", async () => {
    const session = await openSession({ session: sessionOf(engine) });
    const { listener } = session;
    const giveUp = new AbortController();
    const connected = listener.expect("step-1", giveUp.signal);
    const refused = await Promise.all(
      ["wrong step-1\n", `${listener.token} step-2\n`, "x".repeat(300)].map((line) => say(listener.port, line)),
    );
    expect(refused).toEqual(["closed", "closed", "closed"]);
    const late = Promise.race([connected.then(() => "taken"), Promise.resolve("waiting")]);
    expect(await late).toBe("waiting");
    giveUp.abort(new Error("enough"));
    await expect(connected).rejects.toThrow("enough");
    await session.release();
  });
});

describe("what cannot be kept is refused before any request", () => {
  test.each<[string, SandboxOptions, string, string[]]>([
    ["no network", { network: "none" }, "unsupported", ['network "none"']],
    ["some network", { network: { allow: ["example.com"] } }, "unsupported", ["network { allow }"]],
    ["memory", { limits: { memory: 1 << 28 } }, "unsupported", ["limits.memory", String(1 << 28)]],
    ["cpus", { limits: { cpus: 1 } }, "unsupported", ["limits.cpus"]],
    ["no repository", { repo: "/no/such/repository" }, "not_found", ["/no/such/repository"]],
    ["a directory", { baseDir: "/tmp" }, "unsupported", ["baseDir"]],
    ["mounts", { mounts: [{ source: "/tmp" }] }, "unsupported", ["mounts"]],
    ["an unknown option", { dagger: { sesion: {} } as never }, "invalid_argument", ['"sesion"']],
    ["a session without a token", { dagger: { session: { port: 1 } as never } }, "invalid_argument", ["session.token"]],
    ["a port that is text", { dagger: { session: { port: "80", token: "t" } as never } }, "invalid_argument", ["port"]],
    [
      "a program and a session",
      { dagger: { cli: "/x", session: { port: 1, token: "t" } } },
      "invalid_argument",
      ["/x"],
    ],
    ["an empty setup", { dagger: { setup: [[]] } }, "invalid_argument", ["setup[0]"]],
    ["a host name that is none", { dagger: { services: { "a b": { image: "x" } } } }, "invalid_argument", ["a b"]],
    ["a service without an image", { dagger: { services: { a: {} as never } } }, "invalid_argument", ["a.image"]],
    ["a secret that is a value", { dagger: { secrets: { A: "hunter2hunter2" } } }, "invalid_argument", ["secrets.A"]],
    ["a linger that is negative", { dagger: { linger: -1 } }, "invalid_argument", ["linger"]],
  ])("%s", async (_, opts, code, words) => {
    const before = engine.queries.length;
    const given = {
      ...opts,
      dagger: { ...(opts.dagger === undefined ? { session: sessionOf(engine) } : opts.dagger) },
    };
    await expectRefused(createDaggerSandbox(given), code, ...words);
    const error = await createDaggerSandbox(given).catch((reason: unknown) => String((reason as Error).message));
    expect(error).not.toContain("hunter2");
    expect(engine.queries.length).toBe(before);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.on("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function fetchText(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url.replace("localhost", "127.0.0.1"), (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(text)).on("error", reject);
    }).on("error", reject);
  });
}

/** Says something to a port and tells how that was taken. */
function say(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = new Socket();
    socket.on("close", () => resolve("closed")).on("error", () => undefined);
    socket.connect(port, "127.0.0.1", () => socket.write(text));
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
