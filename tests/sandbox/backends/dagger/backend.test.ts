import { existsSync, readdirSync } from "node:fs";
import { get } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runtimeDir } from "../../../../src/machine/home.js";
import { createDaggerSandbox } from "../../../../src/sandbox/backends/dagger.js";
import type { SandboxOptions } from "../../../../src/sandbox/types.js";
import { deleteSnapshot, listSandboxes, listSnapshots, openSandbox, reap } from "../../../../src/sandbox.js";
import { startDaggerEngine } from "../../../fakes/dagger/engine.js";
import { createDaggerHarness } from "../../../support/dagger/harness.js";
import { sessionOf, useDaggerPlace } from "../../../support/dagger/place.js";
import { withEnv } from "../../../support/environment.js";
import { expectRefused } from "../../../support/refused.js";
import { createRepository, git } from "../../../support/scratch.js";

const place = useDaggerPlace();
const { options } = place;
const steps = (): number => place.engine.graph.ran.filter(([, verb]) => verb === "dial").length;

describe("the graph", () => {
  test("without linger each operation is a step of its own, and what only reads leaves the container as it is", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    const before = steps();
    await sandbox.writeFile("a", "1");
    await sandbox.exec({ argv: ["sh", "-c", "echo 2 >> a"] });
    expect(steps() - before).toBe(2);
    expect(await sandbox.readFile("a")).toBe("12\n");
    expect(await sandbox.listDirectory()).toEqual(["a"]);
    const reads = place.engine.queries.filter((query) => query.includes("dial")).slice(-2);
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
    // A step whose guest is killed ends with 137, of which an engine keeps nothing.
    const child = await sandbox.spawn({ argv: ["sh", "-c", "echo up; sleep 60"] });
    await child.stdout.getReader().read();
    await createDaggerHarness("dagger", options).host?.sever?.(sandbox);
    await expectRefused(child.wait(), "backend_lost");
    await expectRefused(sandbox.readFile("a"), "backend_lost");
    await expectRefused(sandbox.snapshot(), "backend_lost");
    await expectRefused(sandbox.fork(), "backend_lost");
    await sandbox.restore(id);
    expect(await sandbox.readFile("a")).toBe("old");
  });

  test("no command can kill the guest, and it waits for what lost its parent", async () => {
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    const orphan = "orphan=$(sh -c 'sleep 0.1 >/dev/null & echo $!')";
    const { stdout } = await sandbox.shell(
      `cat /proc/1/comm; kill -9 1; kill -TERM 1; ${orphan}; echo kept > a; while [ -d /proc/$orphan ]; do sleep 0.01; done`,
      { timeout: 60_000 },
    );
    expect(stdout).toBe("guest\n");
    expect(await sandbox.readFile("a")).toBe("kept\n");
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
  test("a snapshot is brought back as a whole, by this engine and by one that has never seen it", async () => {
    const setup = [
      [
        "sh",
        "-c",
        "mkdir /opt; echo one > /opt/one; echo two > /opt/two; touch /opt/three; mkdir /opt/dir; touch /opt/dir/x",
      ],
    ];
    const own = options({ setup });
    const sandbox = await createDaggerSandbox(own);
    await sandbox.shell(`mkdir d; echo x > d/f; ln -s d/f link; echo outside > /etc/own; chmod 600 /etc/own
      echo changed > /opt/one; rm -r /opt/two /opt/three /opt/dir; ln -s /etc/own /opt/two`);
    const look = "cat link /etc/own /opt/one; stat -c %a /etc/own; readlink /opt/two; ls; ls /opt";
    const whole = "x\noutside\nchanged\n600\n/etc/own\nd\nlink\none\ntwo\n";
    expect((await sandbox.shell(look)).stdout).toBe(whole);
    const id = await sandbox.snapshot();
    await sandbox.shell("rm -rf d link; echo mess > mess; rm /etc/own; mkdir /opt/dir");
    await sandbox.restore(id);
    expect((await sandbox.shell(look)).stdout).toBe(whole);
    await sandbox.teardown();

    const second = await startDaggerEngine();
    try {
      const warnings: string[] = [];
      const onEvent: SandboxOptions["onEvent"] = ({ type, message }) => type === "warning" && warnings.push(message);
      await using elsewhere = await createDaggerSandbox({ ...options({ session: sessionOf(second) }), onEvent });
      await elsewhere.shell("touch mess /etc/mess");
      await elsewhere.restore(id);
      expect((await elsewhere.shell(`${look}; ls /etc/mess 2>&1`)).stdout).toContain(`${whole}ls: cannot access`);
      // Not one of the commands that led to it was run again.
      expect(second.graph.ran.filter(([, verb]) => verb !== "dial")).toEqual(setup);
      expect(warnings).toEqual([]);

      await using child = await elsewhere.spawn({ argv: ["sh", "-c", "echo up; sleep 60"] });
      await child.stdout.getReader().read();
      await elsewhere.shell("rm link; touch /etc/stays");
      await elsewhere.restore(id);
      expect((await elsewhere.shell("ls; ls /etc/stays")).stdout).toBe("d\nlink\n/etc/stays\n");
      expect(warnings.join()).toContain("Only the files in /work");
    } finally {
      await second.close();
    }
    expect((await listSnapshots()).map((snapshot) => snapshot.id)).toContain(id);
    await deleteSnapshot(id);
    expect(readdirSync(join(place.scratch.home, "snapshots")).filter((name) => name.startsWith(id))).toEqual([]);
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

  test("what restricts a kept sandbox still does when it is opened again", async () => {
    const sandbox = await createDaggerSandbox(options({}, { keep: true, allow: ["sh", "echo"], maxOutput: 8 }));
    await sandbox.teardown();
    await using again = await createDaggerSandbox(options({}, { id: sandbox.id, keep: false }));
    await expectRefused(again.exec({ argv: ["ls"] }), "command_not_allowed");
    expect((await again.exec({ argv: ["echo", "more than eight bytes"] })).truncated.stdout).toBe(true);
  });

  test("a kept sandbox is opened again by another session, and reap leaves it", async () => {
    const sandbox = await createDaggerSandbox(options({ setup: [["touch", "/etc/ready"]] }, { keep: true }));
    await sandbox.shell("echo kept > notes; echo own > /etc/own");
    await sandbox.teardown();
    expect((await reap({ backend: "dagger" })).kept).toContain(sandbox.id);
    expect(readdirSync(runtimeDir(sandbox.id)).filter((name) => name.startsWith("kept-"))).toHaveLength(1);
    const second = await startDaggerEngine();
    try {
      const again = await openSandbox({
        ...options({ session: sessionOf(second) }),
        backend: "dagger",
        id: sandbox.id,
      });
      expect((await again.shell("cat notes /etc/own; ls /etc/ready")).stdout).toBe("kept\nown\n/etc/ready\n");
      await again.teardown();
    } finally {
      await second.close();
    }
  });
});

describe("a repository", () => {
  test("has its files inside, its changes, its commits, snapshots and forks", async () => {
    const repo = createRepository(join(place.scratch.path, "repo"));
    const origin = join(place.scratch.path, "origin.git");
    git(place.scratch.path, "clone", "--quiet", "--bare", repo, origin);
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
    expect(await sandbox.defaultBranch()).toBe("main");
  });

  test("is there again when a kept sandbox is opened again", async () => {
    const repo = createRepository(join(place.scratch.path, "kept-repo"));
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
    const serve = `exec busybox httpd -f -p ${port} -h /srv`;
    const args = ["sh", "-c", `mkdir /srv; printf 'hello from %s' "$WHO" > /srv/index.html; ${serve}`];
    const web = { image: "alpine:3", args, env: { WHO: "web" }, ports: [port] };
    await using sandbox = await createDaggerSandbox(options({ services: { web } }));
    const inside = await sandbox.shell(`busybox wget -q -O - http://web:${port}/`);
    expect(inside.stdout).toBe("hello from web");
    expect(await fetchText((await sandbox.url(port)) ?? "")).toBe("hello from web");
    // No service has this port, and nothing else runs that could listen on it.
    const address = await sandbox.url(1);
    await expect(fetchText(address)).rejects.toThrow(/fetch failed|ECONNRESET/);
  });

  test("what is spawned as a service has a host name, and the graph goes on without it", async ({ skip }) => {
    if (!existsSync("/usr/bin/busybox")) skip("not run: there is no busybox to serve with");
    await using sandbox = await createDaggerSandbox(options({ linger: 0 }));
    const port = await freePort();
    await sandbox.writeFile("index.html", "first");
    const serve = `echo own > own; echo up; exec busybox httpd -f -p ${port} -h .`;
    const web = await sandbox.spawn({ argv: ["sh", "-c", serve], service: { hostname: "web", ports: [port] } });
    const [said] = await Promise.all([web.stdout.getReader().read(), sandbox.writeFile("index.html", "second")]);
    expect(Buffer.from(said.value ?? []).toString()).toBe("up\n");
    const ask = `busybox wget -q -O - http://web:${port}/`;
    // Its files are those of its start, and its own ones stay with it.
    expect((await sandbox.shell(`${ask}; echo; ls`)).stdout).toBe("first\nindex.html\n");
    expect(await fetchText((await sandbox.url(port)) ?? "")).toBe("first");
    for (const hostname of ["web", "glovebox-host"]) {
      const again = sandbox.spawn({ argv: ["true"], service: { hostname, ports: [port] } });
      await expectRefused(again, "conflict", `"${hostname}"`);
    }

    // A fork shares the graph and not the service, also while it runs.
    const before = steps();
    await using fork = await sandbox.fork();
    expect(steps()).toBe(before);
    expect(await fork.readFile("index.html")).toBe("second");

    expect(await sandbox.processes()).toHaveLength(1);
    await web.kill();
    expect(await web.wait()).toMatchObject({ signal: "SIGTERM" });
    expect((await sandbox.shell(ask)).exitCode).not.toBe(0);
    expect(await sandbox.readFile("index.html")).toBe("second");
  });

  test("a service that ends before its ports answer says why, and one cannot start from files in use", async () => {
    await using sandbox = await createDaggerSandbox(options());
    const service = { hostname: "web", ports: [await freePort()] };
    const failing = sandbox.spawn({ argv: ["sh", "-c", "echo no configuration >&2; exit 3"], service });
    await expectRefused(failing, "unavailable", "ended with 3", "no configuration");
    await using busy = await sandbox.spawn({ argv: ["sleep", "60"] });
    await expectRefused(sandbox.spawn({ argv: ["true"], service }), "conflict", "in use");
    await busy.kill("SIGKILL");
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
    expect(place.engine.queries.join()).toContain("env://DAGGER_TEST_SECRET");
    expect(place.engine.queries.join()).not.toContain("s3cr3t-of-the-engine");
    expect(place.engine.queries.join()).not.toContain("token-of-the-caller");
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
