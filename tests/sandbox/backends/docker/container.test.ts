import { existsSync, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runtimeDir } from "../../../../src/machine/home.js";
import { engineOf } from "../../../../src/sandbox/backends/docker/engine/engines.js";
import { probeDocker } from "../../../../src/sandbox/backends/docker/probe.js";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import type { SandboxOptions } from "../../../../src/sandbox/types.js";
import { openSandbox, removeSandbox } from "../../../../src/sandbox.js";
import { packDirectory } from "../../../../src/util/tar/tar-pack.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { dockerCensus } from "../../../support/docker/harness.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";
import { createScratch } from "../../../support/scratch.js";

interface Inspected {
  Id: string;
  Config: { User: string; Entrypoint: string[]; Labels: Record<string, string> };
  HostConfig: Record<string, unknown>;
  State: { Pid: number };
}

const reason = whyNoDocker(BUSYBOX);
const scratch = createScratch();
afterAll(() => scratch.remove());

/** Makes an image of the busybox one with another configuration. */
async function imageWith(name: string, changes: readonly string[]): Promise<string> {
  const engine = engineOf();
  const { Id } = await engine.call<{ Id: string }>("POST", "/containers/create", {
    body: { Image: BUSYBOX, Cmd: ["x"] },
  });
  const tag = `glovebox-test/${name}:1`;
  const query = { container: Id, repo: `glovebox-test/${name}`, tag: "1", changes: changes.join("\n") };
  await engine.call("POST", "/commit", { query, body: {} });
  await engine.call("DELETE", `/containers/${Id}`);
  return tag;
}

const inspect = (id: string): Promise<Inspected> =>
  engineOf().call<Inspected>("GET", `/containers/glovebox-${id}/json`);

describeUnless(reason, "a container", { concurrent: true }, () => {
  beforeAll(() => useEngine(BUSYBOX), SET_UP_LIMIT);

  test("has few rights by default, and what it runs has none", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX });
    const { HostConfig, Config } = await inspect(sandbox.id);
    expect(HostConfig).toMatchObject({
      AutoRemove: true,
      NetworkMode: "none",
      Privileged: false,
      CapDrop: ["ALL"],
      CapAdd: ["SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER"],
      SecurityOpt: ["no-new-privileges"],
      LogConfig: { Type: "none" },
      PidsLimit: 4096,
      Memory: 4 * 1024 ** 3,
      IpcMode: "private",
      PidMode: "",
    });
    expect(Object.keys(Config.Labels)).toEqual(expect.arrayContaining(["glovebox.owner", "glovebox.sandbox"]));
    // The first command has a supervisor of its own, those after it one that was there before them.
    for (const user of ["root", "root", "user", "root"]) {
      const script = "grep -E '^(Cap(Prm|Eff|Inh|Amb)|NoNewPrivs|Seccomp):' /proc/self/status";
      const { stdout } = await sandbox.shell(script, { user });
      expect(stdout.split("\n").map((line) => line.split(/:\s*/))).toEqual([
        ...["CapInh", "CapPrm", "CapEff", "CapAmb"].map((name) => [name, "0000000000000000"]),
        ["NoNewPrivs", "1"],
        ["Seccomp", "2"],
        [""],
      ]);
    }
  });

  test("gives one command after the other to the same supervisor, each as who it is for, and keeps nothing of the one before", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX });
    const run = async (script: string, user = "root"): Promise<string> =>
      (await sandbox.shell(script, { user, timeout: 20_000 })).stdout;
    await run("true");
    const supervisor = await run("echo $PPID");
    const look = "id -u; id -G; pwd; ls /proc/self/fd | wc -w; echo $PPID";
    expect(await run(look)).toBe(`0\n0\n/workspace\n4\n${supervisor}`);
    expect(await run(look, "other")).toBe(`1001\n1001 2000\n/workspace\n4\n${supervisor}`);
    expect(await run(look, "7:8")).toBe(`7\n8\n/workspace\n4\n${supervisor}`);
    await run("mkdir own; chmod 700 own");
    expect((await sandbox.shell("pwd", { user: "other", cwd: "own" })).stdout).toBe("/workspace/own\n");
    // What it left behind ends with it, though it has left its session and its parents are dead.
    expect(await run("setsid sh -c 'setsid sleep 987 & sleep 987 &' >/dev/null 2>&1; sleep 0.2; echo left")).toBe(
      "left\n",
    );
    expect(await run("ps | grep -c 'sleep 98[7]'")).toBe("0\n");
    expect(await run("id -u", "other")).toBe("1001\n");
  });

  test("takes none of the processes that a small limit leaves for anything but the commands", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, limits: { pids: 4 } });
    for (let i = 0; i < 4; i++) expect((await sandbox.shell("/bin/true; echo $?")).stdout).toBe("0\n");
  });

  test("has no supervisor in waiting where a command runs as the user that supervisors are", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX });
    const run = (script: string, user?: string): Promise<{ stdout: string }> =>
      sandbox.shell(script, { timeout: 20_000, ...(user && { user }) });
    const before = await run("echo $PPID").then(() => run("echo $PPID"));
    await run(
      "for p in /proc/[0-9]*; do p=$(basename $p); [ $p = $$ ] || [ $p = $PPID ] || kill -STOP $p; done",
      "65432",
    );
    const seen = [before, await run("echo $PPID"), await run("echo $PPID")].map(({ stdout }) => stdout);
    expect(new Set(seen).size).toBe(3);
    expect((await run("ps -o user,args | grep -c '^6543[2] .*guest'")).stdout).toBe("1\n");
  });

  test("cannot harm its first process, nor the supervisors of its calls", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX });
    const text =
      "kill -9 1; kill -STOP 1; kill -TERM 1; for p in /proc/[0-9]*; do p=$(basename $p); [ $p = $$ ] || kill -9 $p; done; " +
      "echo x > /proc/1/fd/1; cat /proc/1/environ /proc/1/mem; rm -rf /.glovebox /bin/true; echo end";
    for (const user of ["root", "user"]) {
      const { stdout, exitCode } = await sandbox.shell(text, { user, timeout: 20_000 });
      expect([exitCode, stdout]).toEqual([0, "end\n"]);
    }
    expect((await sandbox.exec({ argv: ["echo", "alive"] })).stdout).toBe("alive\n");
  });

  test("runs commands as the image's user, or as another one", async () => {
    const image = await imageWith("with-user", ["USER user:team", "WORKDIR /home/user", 'ENV FROM_IMAGE="a b"']);
    await using sandbox = await createDockerSandbox({ image });
    await sandbox.writeFile("by-guest", "x");
    const text = 'id -u; id -g; echo "$HOME $FROM_IMAGE"; echo y > made; rm by-guest; pwd; echo err > /dev/stderr';
    const own = await sandbox.shell(text);
    expect([own.exitCode, own.stdout, own.stderr]).toEqual([0, "1000\n2000\n/home/user a b\n/workspace\n", "err\n"]);
    expect((await sandbox.shell("id; echo $HOME", { user: "root" })).stdout).toBe("uid=0(root) gid=0(root)\n/root\n");
    expect((await sandbox.shell("id -G; echo e > /dev/stderr", { user: "other" })).stdout).toBe("1001 2000\n");
    expect((await sandbox.shell("id -u; id -g", { user: "7:8" })).stdout).toBe("7\n8\n");
    await expect(sandbox.exec({ argv: ["id"], user: "ghost" })).rejects.toMatchObject({
      code: "not_found",
      message: 'There is no user "ghost" in the sandbox',
    });
    // Without capabilities root is nobody special: the directory is the user's.
    await expect(sandbox.shell("touch x", { user: "root" })).resolves.toMatchObject({ exitCode: 1 });
    await sandbox.shell("chmod 777 .");
    await sandbox.shell("echo secret > root-only; chmod 600 root-only", { user: "root" });
    await expect(sandbox.shell("cat root-only")).resolves.toMatchObject({ exitCode: 1 });
    expect(await sandbox.readFile("root-only")).toBe("secret\n");
  });

  test("does not run the image's entrypoint", async () => {
    const image = await imageWith("with-entrypoint", [
      'ENTRYPOINT ["/bin/false"]',
      'CMD ["-x"]',
      "HEALTHCHECK CMD false",
    ]);
    await using sandbox = await createDockerSandbox({ image });
    expect((await sandbox.exec({ argv: ["echo", "hello"] })).stdout).toBe("hello\n");
  });

  test("may hold nothing at all: no shell, no libc, no passwd", async () => {
    const empty = scratch.path;
    const query = { fromSrc: "-", repo: "glovebox-test/empty", tag: "1" };
    const answer = await engineOf().stream("POST", "/images/create", { query, body: packDirectory(`${empty}/home`) });
    for await (const _ of answer);
    await using sandbox = await createDockerSandbox({ image: "glovebox-test/empty:1" });
    await expect(sandbox.exec({ argv: ["true"] })).resolves.toMatchObject({ exitCode: 127 });
    await sandbox.writeFile("dir/file", "bytes");
    expect(await sandbox.readFile("dir/file")).toBe("bytes");
    expect(await sandbox.listDirectory()).toEqual(["dir"]);
  });

  test("gets the guest by a volume where the engine does not see this machine's files", async () => {
    const options: SandboxOptions = { image: BUSYBOX, docker: { guest: "volume" } };
    const [one, two] = await Promise.all([createDockerSandbox(options), createDockerSandbox(options)]);
    await using _one = one;
    await using _two = two;
    for (const sandbox of [one, two]) expect((await sandbox.exec({ argv: ["echo", "x"] })).stdout).toBe("x\n");
    const { HostConfig } = await inspect(one.id);
    expect(HostConfig["Mounts"]).toMatchObject([{ Type: "volume", ReadOnly: true }]);
    const helpers = await engineOf().call<{ Names: string[] }[]>("GET", "/containers/json", { query: { all: true } });
    expect(helpers.filter(({ Names }) => /glovebox-guest-/.test(Names[0] ?? ""))).toEqual([]);
  });

  test("is told from others on the network: the loopback only, or nothing but the names", async () => {
    const server = createServer((socket) => socket.end("host"));
    await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
    await using sandbox = await createDockerSandbox({ image: BUSYBOX });
    expect((await sandbox.shell("ip -o link | cut -d: -f2 | grep -v ' lo' | wc -l; ip route")).stdout).toBe("0\n");
    const itself = await sandbox.shell("nc -l -p 7001 -e echo me & until nc localhost 7001 </dev/null; do :; done", {
      timeout: 20_000,
    });
    expect(itself.stdout).toBe("me\n");
    expect((await sandbox.shell("cat /etc/resolv.conf")).stdout).toBe("");
    await using full = await createDockerSandbox({ image: BUSYBOX, network: "full" });
    expect((await full.shell("ip -o link | cut -d: -f2 | grep -c eth0")).stdout).toBe("1\n");
    await using other = await createDockerSandbox({ image: BUSYBOX, network: "full" });
    const address = (await other.shell("ip -4 -o addr show eth0 | sed 's/.*inet //; s,/.*,,'")).stdout.trim();
    await other.spawn({ argv: ["sh", "-c", "while :; do echo other | nc -l -p 7000; done"] });
    const reached = await other.shell(`until nc -w 2 ${address} 7000 </dev/null | grep other; do sleep 0.1; done`, {
      timeout: 20_000,
    });
    expect(reached.stdout).toContain("other");
    expect(address).toMatch(/^198\.1[89]\./);
    expect((await full.shell(`nc -w 2 ${address} 7000 </dev/null; echo $?`)).stdout).not.toContain("other");
    await using named = await createDockerSandbox({ image: BUSYBOX, network: { allow: ["example.com"] } });
    const { stdout } = await named.shell(
      "echo $https_proxy; printf 'GET http://other.invalid/ HTTP/1.1\\r\\nHost: other.invalid\\r\\n\\r\\n' | nc 127.0.0.1 3128",
    );
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n/);
    expect(stdout).toMatch(/403/);
    server.close();
  });

  test("says what an unsafe option opens, and only then", async () => {
    const docker = { unsafe: { mounts: true, capabilities: ["NET_RAW"] } };
    const mounts = [{ source: scratch.path, target: "/host" }];
    await using sandbox = await createDockerSandbox({ image: BUSYBOX, docker, mounts });
    expect((await sandbox.shell("ls /host; touch /host/x")).exitCode).toBe(1);
    const { stdout } = await sandbox.shell("grep CapEff /proc/self/status");
    const netRaw = 1 << 13;
    expect(Number.parseInt(stdout.split("\t")[1] ?? "", 16) & netRaw).toBe(netRaw);

    const shared = { hostNetwork: true, hostPid: true, hostIpc: true, devices: ["/dev/null"] };
    await using open = await createDockerSandbox({ image: BUSYBOX, docker: { unsafe: shared } });
    expect((await inspect(open.id)).HostConfig).toMatchObject({
      NetworkMode: "host",
      PidMode: "host",
      IpcMode: "host",
      Devices: [{ PathOnHost: "/dev/null" }],
    });
    // The guest is not the first process there, and still ends all that a call has started.
    const late = await open.shell("setsid sleep 765 & sleep 60", { timeout: 300 });
    expect([late.timedOut, (await open.shell("ps | grep -c 'sleep 76[5]'")).stdout]).toEqual([true, "0\n"]);
  });

  test("allows no more than before when it was kept and is opened again", async () => {
    const docker = { unsafe: { mounts: true } };
    const mounts = [{ source: scratch.path, target: "/host" }];
    const kept = await createDockerSandbox({
      image: BUSYBOX,
      docker,
      mounts,
      keep: true,
      allow: ["ls"],
      maxOutput: 64,
    });
    await kept.teardown();
    const again = await createDockerSandbox({ id: kept.id });
    await expect(again.exec({ argv: ["id"] })).rejects.toMatchObject({ code: "command_not_allowed" });
    const { exitCode, truncated } = await again.exec({ argv: ["ls", "-lR", "/host", "/bin"] });
    expect([exitCode, truncated.stdout]).toEqual([0, true]);
    await again.teardown();
    await expect(createDockerSandbox({ id: kept.id, network: "full" })).rejects.toMatchObject({
      code: "invalid_argument",
    });
    const other = createDockerSandbox({ id: kept.id, docker, mounts: [{ source: "/etc", target: "/etc2" }] });
    await expect(other).rejects.toMatchObject({ code: "unsupported" });
    await removeSandbox(kept.id);
  });

  test("is opened again by its id alone, and what a dead process left beside its record goes", async () => {
    const kept = await createDockerSandbox({ image: BUSYBOX, keep: true });
    await kept.writeFile("file", "kept");
    await kept.teardown();
    const left = join(runtimeDir(kept.id), "store-0123456789ab");
    mkdirSync(left);
    {
      await using again = await openSandbox({ id: kept.id });
      expect([again.backend, await again.readFile("file"), existsSync(left)]).toEqual(["docker", "kept", false]);
    }
    const other = openSandbox({ id: kept.id, backend: "local" });
    await expect(other).rejects.toMatchObject({
      code: "invalid_argument",
      hint: "omit backend: the id is enough",
    });
    await removeSandbox(kept.id);
  });

  test("is found by doctor", async () => {
    expect(await probeDocker()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: "engine", status: "ok" }),
        expect.objectContaining({ name: "guest", status: "ok" }),
        expect.objectContaining({ name: "limits", status: "ok" }),
      ]),
    );
  });

  test("113 MB of output into a slow reader do not fill the memory", async () => {
    await using sandbox = await createDockerSandbox({ image: BUSYBOX });
    let bytes = 0;
    let most = 0;
    const before = process.memoryUsage().rss;
    const result = await sandbox.exec({
      argv: ["sh", "-c", "dd if=/dev/zero bs=1M count=113 2>/dev/null"],
      maxOutput: 0,
      async onStdout(chunk) {
        bytes += chunk.length;
        if (bytes % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
        most = Math.max(most, process.memoryUsage().rss - before);
      },
    });
    expect([result.exitCode, bytes, result.bytes.stdout]).toEqual([0, 113 << 20, 113 << 20]);
    expect(most).toBeLessThan(100 << 20);
  });
});

describeUnless(reason, "bad input, before anything is made", {}, () => {
  beforeAll(() => useEngine(BUSYBOX), SET_UP_LIMIT);

  const image = BUSYBOX;
  test.each<[string, SandboxOptions, string, RegExp]>([
    ["a bad tag", { image: "a:b:c" }, "invalid_argument", /image/],
    ["upper case", { image: "Debian/X" }, "invalid_argument", /image/],
    ["a path for an image", { image: "../x" }, "invalid_argument", /image/],
    ["an image that nobody has", { image: "glovebox-test/none:1", docker: { pull: "never" } }, "not_found", /none:1/],
    ["a base directory", { image, baseDir: "/tmp" }, "unsupported", /baseDir/],
    ["an overlay", { image, repo: ".", workspace: "overlay" }, "unsupported", /workspace/],
    ["a mount", { image, mounts: [{ source: "/etc" }] }, "unsupported", /mounts no host paths/],
    ["a disk limit", { image, limits: { disk: 1 } }, "unsupported", /disk/],
    ["privileged", { image, docker: { privileged: true } as object }, "invalid_argument", /privileged/],
    ["a misspelt option", { image, docker: { unsaef: {} } as object }, "invalid_argument", /unsaef/],
    ["a relative work directory", { image, docker: { workDir: "x" } }, "invalid_argument", /workDir/],
    ["a work directory of the kernel's", { image, docker: { workDir: "/proc/x" } }, "invalid_argument", /workDir/],
    ["a user with a slash", { image, docker: { user: "../x" } }, "invalid_argument", /user/],
    ["host and context", { image, docker: { host: "unix:///x", context: "y" } }, "invalid_argument", /docker.host/],
    ["no repository", { image, repo: "/nowhere/at/all" }, "not_found", /nowhere/],
    ["an engine that is not there", { image, docker: { host: "unix:///nowhere.sock" } }, "unavailable", /nowhere.sock/],
    ["a user that the image lacks", { image, docker: { user: "ghost" } }, "invalid_argument", /ghost/],
  ])("%s", async (_what, options, code, message) => {
    const before = await dockerCensus();
    const call = createDockerSandbox(options);
    await expect(call).rejects.toMatchObject({ code, backend: "docker" });
    await expect(call).rejects.toThrow(message);
    expect(await dockerCensus()).toEqual(before);
  });

  test("an engine that is not running is told with the line that starts it", async () => {
    const call = createDockerSandbox({ image, docker: { host: "unix:///var/run/glovebox-none.sock" } });
    await expect(call).rejects.toMatchObject({ hint: expect.stringContaining("systemctl start docker") });
  });
});
