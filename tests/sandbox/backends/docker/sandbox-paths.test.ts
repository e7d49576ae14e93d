import { beforeAll, expect, test } from "vitest";
import { createDockerSandbox } from "../../../../src/sandbox/backends/docker.js";
import type { Sandbox, SandboxOptions } from "../../../../src/sandbox/types.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../../../support/docker/engine.js";
import { SET_UP_LIMIT } from "../../../support/run/set-up-limit.js";

const SECRET = "secret-91b3e7";

describeUnless(whyNoDocker(BUSYBOX), 'paths: "sandbox" in a container', { concurrent: true }, () => {
  beforeAll(() => useEngine(BUSYBOX), SET_UP_LIMIT);
  const open = (opts: SandboxOptions = {}): Promise<Sandbox> =>
    createDockerSandbox({ image: BUSYBOX, paths: "sandbox", ...opts });

  test("file calls have the rights of the user that commands run as", async () => {
    await using sandbox = await open({ docker: { user: "7:8" } });
    const asRoot = { user: "root" } as const;
    await sandbox.shell(
      `mkdir -m 700 /root/own; echo ${SECRET} > /root/own/key; echo ${SECRET} > /etc/key; chmod 600 /etc/key`,
      asRoot,
    );
    expect((await sandbox.shell("cat /etc/key", asRoot)).stdout).toBe(`${SECRET}\n`);
    const denied = { code: "permission_denied" };
    await expect(sandbox.readFile("/etc/key")).rejects.toMatchObject(denied);
    await expect(sandbox.readFile("/root/own/key")).rejects.toMatchObject(denied);
    await expect(sandbox.listDirectory("/root/own")).rejects.toMatchObject(denied);
    await expect(sandbox.writeFile("/etc/key", "x")).rejects.toMatchObject(denied);
    await expect(sandbox.remove("/etc/key")).rejects.toMatchObject(denied);
    await expect(sandbox.copy("/etc/key", "/tmp/key")).rejects.toMatchObject(denied);
    await expect(sandbox.downloadDirectory("/root/own", "/nonexistent/x")).rejects.toMatchObject(denied);
    await sandbox.shell("mkdir -m 1777 /shared; echo theirs > /shared/file", asRoot);
    await expect(sandbox.writeFile("/shared/file", "x")).rejects.toMatchObject(denied);
    await sandbox.writeFile("/shared/mine", "x");
    expect((await sandbox.shell("stat -c '%u %g' /shared/mine; cat /shared/file")).stdout).toBe("7 8\ntheirs\n");
  });

  test("a command enters its cwd as its own user", async () => {
    await using sandbox = await open({ docker: { user: "7:8" } });
    await sandbox.shell("mkdir -m 700 /root/own", { user: "root" });
    expect((await sandbox.shell("pwd", { user: "root", cwd: "/root/own" })).stdout).toBe("/root/own\n");
    const entering = sandbox.shell("pwd", { cwd: "/root/own" });
    await expect(entering).rejects.toMatchObject({ code: "permission_denied" });
  });

  test("the guest and other users' commands can't be read through /proc", async () => {
    await using sandbox = await open({ docker: { user: "7:8" } });
    const other = await sandbox.spawn({ argv: ["cat"], env: { SECRET }, stdin: "pipe", user: "root" });
    for (const pid of (await sandbox.listDirectory("/proc")).filter((name) => /^\d+$/.test(name))) {
      for (const name of ["environ", "mem", "fd/0", "root/etc/passwd"]) {
        const read = await sandbox.readFile(`/proc/${pid}/${name}`).catch(() => "");
        expect(read ?? "", `/proc/${pid}/${name}`).toBe("");
      }
    }
    await other.kill("SIGKILL");
  });

  test("a device is not replaced by a file, which would break every later command", async ({ expect }) => {
    await using sandbox = await open();
    await sandbox.shell("ln -s /dev/null link");
    const refused = { code: "not_regular_file" };
    const one = async function* (): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1);
    };
    for (const path of ["/dev/null", "/dev/zero", "link"]) {
      await expect(sandbox.writeFile(path, "x"), path).rejects.toMatchObject(refused);
      await expect(sandbox.writeFile(path, one()), path).rejects.toMatchObject(refused);
      await expect(sandbox.appendFile(path, "x"), path).rejects.toMatchObject(refused);
    }
    await expect(sandbox.uploadFiles([{ path: "/dev/full", content: "x" }])).rejects.toMatchObject(refused);
    expect((await sandbox.shell("stat -c %F /dev/null /dev/zero /dev/full")).stdout).toBe(
      "character special file\n".repeat(3),
    );
  });

  test("a command that kills or stops what serves them is survived", async ({ expect }) => {
    await using sandbox = await open();
    await sandbox.writeFile("/tmp/file", "x");
    const find = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q "serve-file[s]" && kill -SIG \${p#/proc/}; done; true`;
    for (const signal of ["KILL", "STOP", "KILL"]) {
      await sandbox.shell(find.replace("SIG", signal), { timeout: 20_000 });
      await expect.poll(() => sandbox.readFile("/tmp/file").catch(() => ""), { timeout: 30_000 }).toBe("x");
    }
  });
});
