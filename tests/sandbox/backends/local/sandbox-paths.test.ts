import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLocalSandbox, local } from "../../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { listSandboxes, openSandbox, removeSandbox } from "../../../../src/sandbox.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

const SECRET = "secret-5a0c91";
let scratch: Scratch;
let home: string | undefined;
beforeEach(() => {
  scratch = createScratch();
  home = process.env["GLOVEBOX_HOME"];
  process.env["GLOVEBOX_HOME"] = scratch.home;
});
afterEach(() => {
  if (home === undefined) delete process.env["GLOVEBOX_HOME"];
  else process.env["GLOVEBOX_HOME"] = home;
  scratch.remove();
});

const open = (opts: SandboxOptions = {}): Promise<Sandbox> =>
  createLocalSandbox({
    paths: "sandbox",
    ...(!("baseDir" in opts || "isolation" in opts) && { workDir: "/workspace" }),
    ...opts,
  });

/** What a call returns; the code of its error if it fails. */
async function outcome<T>(call: Promise<T>): Promise<T | string> {
  return await call.catch((error: { code: string }) => error.code);
}

describe("a command that runs beside file calls", () => {
  test("shows nothing of itself, of the guest or of others in /proc", async () => {
    await using sandbox = await open();
    const other = await sandbox.spawn({
      argv: ["sh", "-c", `echo ${SECRET} > private; exec 7< private; echo ready; cat`],
      env: { SECRET },
      stdin: "pipe",
    });
    const reader = other.stdout.getReader();
    await reader.read();
    const pids = (await sandbox.listDirectory("/proc")).filter((name) => /^\d+$/.test(name));
    expect(pids).toEqual(["1"]);
    for (let pid = 1; pid <= 40; pid++) {
      for (const name of ["environ", "cmdline", "fd/7", "root/etc/passwd", "cwd/private", "mem", "maps", "stack"]) {
        const read = await outcome(sandbox.readFile(`/proc/${pid}/${name}`));
        expect(read ?? "", `/proc/${pid}/${name}`).not.toMatch(new RegExp(`${SECRET}|GLOVEBOX|root:x`));
      }
    }
    const own = await sandbox.readFile("/proc/self/cmdline");
    expect(own).toBe("glovebox-guest\0serve-files\0");
    expect(await outcome(sandbox.readFile("/proc/self/environ"))).toMatch(/^$|permission_denied/);
    expect(await sandbox.readFile("/proc/sys/kernel/hostname")).toBe("glovebox\n");
    expect(await outcome(sandbox.appendFile("/proc/sys/kernel/hostname", "x"))).toBe("permission_denied");
    await other.kill("SIGKILL");
  });

  test("is not visible to another one, not even through the directory above its own", async () => {
    await using sandbox = await createLocalSandbox({ workDir: "/workspace" });
    await sandbox.makeDirectory("deep/er");
    const other = await sandbox.spawn({ argv: ["sh", "-c", "echo ready; cat"], env: { SECRET }, stdin: "pipe" });
    await other.stdout.getReader().read();
    for (const [cwd, up] of [
      ["/workspace", ".."],
      ["/workspace/deep/er", "../../.."],
    ] as const) {
      // Not by `cd`: a shell has a path of its own for where it is.
      const script = `pwd -P; stat -c %d ${up}/proc /proc; cat ${up}/proc/*/environ`;
      const { stdout } = await sandbox.shell(script, { cwd });
      const [place, relative, absolute] = stdout.split("\n");
      expect(place).toBe(cwd);
      expect(relative).toBe(absolute);
      expect(stdout).not.toContain(SECRET);
    }
    await other.kill("SIGKILL");
  });

  test("is not visible to another one that starts where a link of /proc leads", async () => {
    await using sandbox = await open();
    const other = await sandbox.spawn({ argv: ["sh", "-c", "echo ready; cat"], env: { SECRET }, stdin: "pipe" });
    await other.stdout.getReader().read();
    const script = "stat -c %d ../proc; cat ../proc/*/environ";
    const descriptors = Array.from({ length: 40 }, (_, number) => `/proc/self/fd/${number}`);
    for (const cwd of ["/proc/self/root", "/proc/self/cwd", "/proc/1/root", "/dev/fd/10", ...descriptors]) {
      await sandbox.exec("ln", ["-sfn", cwd, "link"]);
      for (const place of [cwd, "link", "link/."]) {
        const started = await outcome(sandbox.shell(script, { cwd: place }).then(({ stdout }) => stdout));
        expect(started, `${cwd} as ${place}`).toMatch(/^(invalid_path|not_found|permission_denied)$/);
      }
    }
    for (const place of ["/proc/self/net", "/proc/self/task", "/proc/net"]) {
      expect((await sandbox.exec({ argv: ["pwd", "-P"], cwd: place })).stdout, place).toMatch(/^\/proc\/\d+\//);
    }
  });

  test("starts where links lead", async () => {
    await using sandbox = await open();
    await sandbox.shell(
      "mkdir -p a/b /tmp/there; ln -s ../../tmp a/up; ln -s /workspace/a/up/there/ far; ln -s b a/near; ln -s loop loop; ln -s absent dead; " +
        "ln -s file/x below; touch file; ln -s . dot; mkdir locked; mkdir locked/in; chmod 0 locked",
    );
    for (const [cwd, place] of [
      ["far", "/tmp/there"],
      ["a/near", "/workspace/a/b"],
      ["dot/dot/dot/far/.", "/tmp/there"],
      ["/workspace/a/up", "/tmp"],
      ["/", "/"],
      ["/bin", "/usr/bin"],
      ["loop", "invalid_path"],
      ["dead", "not_found"],
      ["file", "invalid_path"],
      ["below", "invalid_path"],
      ["locked", "permission_denied"],
      ["locked/in", "permission_denied"],
      [`${"dot/".repeat(40)}a`, "/workspace/a"],
      [`${"dot/".repeat(41)}a`, "invalid_path"],
    ] as const) {
      const started = await outcome(sandbox.exec({ argv: ["pwd", "-P"], cwd }).then(({ stdout }) => stdout.trim()));
      expect(started, cwd).toBe(place);
    }
  });

  test("can't lead a call to what a process has open by swapping links", async () => {
    await using sandbox = await open();
    await sandbox.shell(
      "mkdir -p /tmp/good/etc; echo fine > /tmp/fine; cp /tmp/fine /tmp/good/etc/passwd; ln -s /tmp/good a",
    );
    // A file that is written while the directory is away makes another one in its place.
    const repair =
      "rm -rf /tmp/g2; mkdir -p /tmp/good/etc; cp /tmp/fine /tmp/good/new; mv /tmp/good/new /tmp/good/etc/passwd";
    // By a rename: where there is no link for a moment, a file that is written makes a directory.
    const swap = "for to in /proc/self/root /tmp/good /proc/1/cwd; do ln -sfn $to b; mv -T b a; done";
    const move = `mv -T /tmp/good /tmp/g2; mv -T /tmp/g2 /tmp/good; [ -e /tmp/good/etc/passwd ] || { ${repair}; }`;
    const swapping = await sandbox.spawn({
      argv: ["sh", "-c", `echo ready; exec >/dev/null 2>&1; while :; do ${swap}; ${move}; done`],
    });
    await swapping.stdout.getReader().read();
    const seen = new Map<string, number>();
    const end = performance.now() + 30_000;
    const isDone = (): boolean => seen.has("fine\n") && seen.has("invalid_path");
    for (let i = 0; (i < 300 || !isDone()) && performance.now() < end; i++) {
      const read = (await outcome(sandbox.readFile("a/etc/passwd"))) ?? "absent";
      seen.set(read, (seen.get(read) ?? 0) + 1);
      await outcome(sandbox.writeFile("a/etc/made", "x"));
    }
    await swapping.kill("SIGKILL");
    await swapping.wait();
    const allowed = new Set(["fine\n", "absent", "invalid_path", "not_found"]);
    expect([...seen.keys()].filter((each) => !allowed.has(each))).toEqual([]);
    expect(isDone(), JSON.stringify([...seen])).toBe(true);
  });
});

describe("file calls", () => {
  test("have no more rights than a command", async () => {
    await using sandbox = await open();
    for (const path of ["/etc/passwd", "/usr/bin/env", "/glovebox/guest", "/dev/null", "/dev/full"]) {
      expect(await outcome(sandbox.writeFile(path, "x")), path).toMatch(/permission_denied|not_regular_file/);
      expect(await outcome(sandbox.remove(path)), path).toBe("permission_denied");
      expect(await outcome(sandbox.rename(path, "/tmp/taken")), path).toMatch(/permission_denied|conflict/);
    }
    expect(await sandbox.listDirectory("/tmp")).toEqual([]);
    await sandbox.shell("mkdir /tmp/locked; echo x > /tmp/locked/file; chmod 0 /tmp/locked");
    expect(await outcome(sandbox.readFile("/tmp/locked/file"))).toBe("permission_denied");
    expect(await outcome(sandbox.exec({ argv: ["pwd"], cwd: "/tmp/locked" }))).toBe("permission_denied");
  });

  test("empty nothing that they can't remove", async () => {
    await using sandbox = await open();
    await sandbox.writeFile("/tmp/file", "x");
    await expect(sandbox.remove("/tmp", { recursive: true })).rejects.toMatchObject({ code: "conflict" });
    await expect(sandbox.rename("/tmp", "moved")).rejects.toMatchObject({ code: "conflict" });
    expect(await sandbox.readFile("/tmp/file")).toBe("x");
    expect(await sandbox.listDirectory()).toEqual([]);
  });

  test("leave nothing unfinished when the sandbox is closed in the middle", async () => {
    const baseDir = join(scratch.path, "mine");
    mkdirSync(baseDir);
    const sandbox = await open({ baseDir });
    const endless = (async function* () {
      for (;;) {
        yield Buffer.alloc(1 << 16);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    const writing = outcome(sandbox.writeFile(`${baseDir}/big`, endless));
    await expect
      .poll(() => readdirSync(baseDir).some((name) => name.startsWith(".gb-")), { timeout: 30_000 })
      .toBe(true);
    await sandbox.teardown();
    expect(await writing).not.toBeUndefined();
    expect(readdirSync(baseDir).filter((name) => name.startsWith(".gb-") || name === "big")).toEqual([]);
  });
});

describe("the option", () => {
  test("is refused without isolation, before anything is created", async () => {
    expect(local.capabilities({ isolation: "none" }).paths).toEqual(["workdir"]);
    await expect(open({ isolation: "none" })).rejects.toMatchObject({
      code: "unsupported",
      message: expect.stringMatching(/"sandbox".*: without isolation/) as string,
      hint: expect.stringContaining("leave paths out") as string,
    });
    expect(await listSandboxes()).toEqual([]);
    for (const paths of ["all", "", null, 1]) {
      await expect(open({ paths: paths as never }), String(paths)).rejects.toMatchObject({ code: "invalid_argument" });
    }
  });

  test("is remembered by name, and another value is refused", async () => {
    const named = { backend: "local", name: "far", ifExists: "reopen", keep: true } as const;
    const first = await openSandbox({ ...named, paths: "sandbox" });
    const handle = await openSandbox({ id: "far" });
    expect(await handle.listDirectory("/home/sandbox")).toEqual([]);
    const conflict = { code: "conflict", retryable: false };
    await expect(openSandbox({ ...named, paths: "workdir" })).rejects.toMatchObject(conflict);
    await first.teardown();
    await expect(openSandbox({ ...named, paths: "workdir" })).rejects.toMatchObject(conflict);
    await expect(openSandbox({ id: "far", paths: "workdir" })).rejects.toMatchObject({ code: "invalid_argument" });
    const again = await openSandbox(named);
    expect(again.id).toBe(first.id);
    expect(await again.listDirectory("/home/sandbox")).toEqual([]);
    const snapshot = await again.snapshot();
    await again.teardown();
    const started = await openSandbox({ snapshot, paths: "sandbox" });
    await started.writeFile("/tmp/file", "x");
    await started.teardown();
    await removeSandbox("far");
    const near = await openSandbox({ ...named, name: "near" });
    await near.teardown();
    await expect(openSandbox({ ...named, name: "near", paths: "sandbox" })).rejects.toMatchObject(conflict);
    await removeSandbox("near");
  });

  test("is named by the hint of an error about a path that leads outside", async () => {
    await using sandbox = await open({ paths: "workdir" });
    await sandbox.shell("ln -s /etc/passwd link");
    const hint = expect.stringContaining('paths: "sandbox" (--paths sandbox)') as string;
    await expect(sandbox.readFile("/etc/passwd")).rejects.toMatchObject({ code: "path_confinement", hint });
    await expect(sandbox.readFile("link")).rejects.toMatchObject({ code: "path_confinement", hint });
    await expect(sandbox.exec({ argv: ["pwd"], cwd: "/tmp" })).rejects.toMatchObject({ hint });
    await using plain = await createLocalSandbox({ isolation: "none" });
    const error = await plain.readFile("/etc/passwd").catch((caught: { hint?: string }) => caught);
    expect((error as { hint?: string }).hint).not.toContain("paths");
  });
});
