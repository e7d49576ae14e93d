import { readdirSync } from "node:fs";
import { access, writeFile } from "node:fs/promises";
import type { Capabilities } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import { check, equal, refuses, within } from "../assert.js";
import { answers } from "../context.js";
import { assertBeating, HEARTBEAT } from "../heartbeat.js";
import { makeOutside } from "../outside.js";
import { pause, script, scriptArgv, until } from "../script.js";
import type { ConformanceCase } from "../types.js";

/** The names of everything that a sandbox lacks. */
function lacking({ limits, network, snapshot, fork, keep, paths, ...flags }: Capabilities): string[] {
  const missing = (
    ["networkRules", "liveNetwork", "pty", "user", "workDir", "combinedOutput", "secrets", "ports", "git"] as const
  ).filter((name) => !flags[name]);
  return [
    ...(["memory", "cpus", "pids", "disk"] as const)
      .filter((name) => !limits.includes(name))
      .map((name) => `limits.${name}`),
    ...(["none", "full", "allow"] as const).filter((name) => !network.includes(name)).map((name) => `network.${name}`),
    ...(snapshot === "none" ? ["snapshot"] : []),
    ...(fork === "none" ? ["fork"] : []),
    ...(keep === "all" ? [] : ["keep"]),
    ...(paths?.includes("sandbox") === true ? [] : ["paths"]),
    ...missing,
  ].sort();
}

export const lifecycleCases: readonly ConformanceCase[] = [
  {
    id: "lifecycle.identity",
    title: "identity",
    requirement:
      "A sandbox has a unique id, the name of its backend, an absolute work directory and its capabilities. [S1-AC-2]",
    async run({ sandbox, open }) {
      const other = await open();
      for (const { id, backend } of [sandbox, other]) {
        check(typeof id === "string" && /^[\w.-]+$/.test(id), `the id is ${JSON.stringify(id)}`);
        check(typeof backend === "string" && backend.length > 0, `the backend is ${JSON.stringify(backend)}`);
      }
      check(sandbox.id !== other.id, "two sandboxes have one id");
      check(
        sandbox.workDir.startsWith("/") && !/\/$|\/\.\.?(\/|$)/.test(sandbox.workDir),
        `workDir is ${sandbox.workDir}`,
      );
      equal((await script(sandbox, "pwd")).trim(), sandbox.workDir, "the work directory as the sandbox sees it");
    },
  },
  {
    id: "lifecycle.capabilities",
    title: "capabilities",
    requirement: "The capabilities are complete, and each has a value of the contract.",
    async run({ sandbox: { capabilities: c } }) {
      check(
        ["none", "namespaces", "container", "gvisor", "microvm", "remote"].includes(c.isolation),
        `isolation: ${c.isolation}`,
      );
      check(["complete", "descendants", "best-effort"].includes(c.killTree), `killTree: ${c.killTree}`);
      check(["consistent", "crash-consistent", "none"].includes(c.snapshot), `snapshot: ${c.snapshot}`);
      check(["copy-on-write", "copy", "none"].includes(c.fork), `fork: ${c.fork}`);
      check(
        c.network.length > 0 && c.network.every((n) => ["none", "full", "allow"].includes(n)),
        `network: ${c.network}`,
      );
      check(
        c.limits.every((l) => ["memory", "cpus", "pids", "disk"].includes(l)),
        `limits: ${c.limits}`,
      );
      equal(
        [c.pty, c.user, c.ports, c.git].map((flag) => typeof flag),
        Array(4).fill("boolean"),
        "pty, user, ports, git",
      );
    },
  },
  {
    id: "lifecycle.reasons",
    title: "reasons for what is missing",
    requirement: "`capabilities.reasons` says why for everything that is missing, and for nothing else.",
    async run({ sandbox: { capabilities } }) {
      const reasons = Object.entries(capabilities.reasons ?? {});
      equal(reasons.map(([name]) => name).sort(), lacking(capabilities), "what has a reason");
      for (const [name, reason] of reasons) check(/\w/.test(reason), `the reason for ${name} is empty`);
    },
  },
  {
    id: "lifecycle.teardown-twice",
    title: "tearing down twice",
    requirement: "`teardown` may be called again, even concurrently, and never throws. [S1-AC-10]",
    closes: true,
    async run({ sandbox }) {
      await answers(sandbox);
      await within(60_000, "teardown", Promise.all([sandbox.teardown(), sandbox.teardown()]));
      equal(await within(60_000, "teardown", sandbox.teardown()), undefined, "the third result");
    },
  },
  {
    id: "lifecycle.closed",
    title: "calls after teardown",
    requirement: "After `teardown` every other call is `closed`.",
    closes: true,
    async run({ sandbox, hostDirectory }) {
      await answers(sandbox);
      const host = await hostDirectory();
      await sandbox.teardown();
      for (const [name, call] of Object.entries(calls(sandbox, host))) await refuses("closed", name, call);
    },
  },
  {
    id: "lifecycle.dispose",
    title: "disposal",
    requirement: "`await using` tears a sandbox down.",
    async run({ open }) {
      let used: Sandbox;
      {
        await using sandbox = await open();
        await answers(sandbox);
        used = sandbox;
      }
      await refuses("closed", "exec after the block", () => used.exec({ argv: ["true"] }));
    },
  },
  {
    id: "lifecycle.teardown-removes",
    title: "teardown removes the files",
    requirement: "`teardown` removes the files, whatever their bits, uncommitted ones too. [S1-AC-9]",
    needs: (_, { host }) => (host?.directoryOf ? undefined : "the harness does not say where the files are"),
    closes: true,
    async run({ sandbox, harness }) {
      await script(
        sandbox,
        "mkdir -p a/b && echo x > a/b/f && chmod 555 a/b && echo y > -rf && mkfifo pipe && ln -s / root",
      );
      const directory = harness.host?.directoryOf?.(sandbox);
      check(directory !== undefined, "the harness does not know the sandbox");
      await access(directory);
      await within(60_000, "teardown", sandbox.teardown());
      const isThere = await access(directory).then(
        () => true,
        () => false,
      );
      check(!isThere, `${directory} is still there`);
    },
  },
  {
    id: "lifecycle.census",
    title: "no leftovers",
    requirement:
      "After sandboxes were opened, used and torn down, the backend has nothing left that was not there before.",
    needs: (_, { census }) => (census ? undefined : "the harness gives no census"),
    exclusive: true,
    async run({ open, harness }) {
      const before = await harness.census?.();
      const sandboxes = await Promise.all([open(), open(), open()]);
      for (const sandbox of sandboxes) {
        await sandbox.writeFile("a/b", "x");
        await sandbox.spawn({ argv: scriptArgv('trap "" TERM HUP; while :; do sleep 1; done') });
        await answers(sandbox);
      }
      const meanwhile = (await harness.census?.())?.filter((name) => !before?.includes(name));
      check(meanwhile !== undefined && meanwhile.length > 0, "the census does not list open sandboxes");
      await Promise.all(sandboxes.map((sandbox) => sandbox.teardown()));
      const after = (await harness.census?.())?.filter((name) => !before?.includes(name));
      equal(after, [], "what is left");
    },
  },
  {
    id: "lifecycle.descriptors",
    title: "no open descriptors",
    requirement: "Commands and file calls leave no descriptor open in the process that makes them.",
    needs: () => (openDescriptors() === undefined ? "there is no /proc/self/fd to count descriptors in" : undefined),
    exclusive: true,
    async run({ sandbox, open }) {
      const use = async (each: Sandbox): Promise<void> => {
        await each.writeFile("file", "x");
        for (let i = 0; i < 20; i++) await answers(each);
        equal(await each.readFile("file"), "x", "readFile");
      };
      await use(sandbox);
      const before = openDescriptors() ?? 0;
      for (let i = 0; i < 3; i++) {
        const other = await open();
        await use(other);
        await other.teardown();
      }
      let more = (openDescriptors() ?? 0) - before;
      // A stream may close a moment after its end was read, and the process may open descriptors of its own.
      for (let i = 0; i < 40 && more >= 20; i++) {
        await pause(50);
        more = (openDescriptors() ?? 0) - before;
      }
      check(more < 20, `${more} more descriptors are open than before 60 commands`);
    },
  },
  {
    id: "lifecycle.teardown-kills",
    title: "teardown ends processes and calls",
    requirement: "`teardown` ends every process of the sandbox, and running calls become errors, not results.",
    closes: true,
    async run({ sandbox, open }) {
      const child = await sandbox.spawn({ argv: scriptArgv(HEARTBEAT, "beat") });
      await assertBeating(sandbox, "beat", "before teardown");
      const call = sandbox.exec({ argv: ["sleep", "60"] });
      const outcome = call.then(
        ({ exitCode, signal }) => `${exitCode} ${signal}`,
        (error: unknown) => (error as { code?: string }).code,
      );
      await pause(100);
      await within(60_000, "teardown", sandbox.teardown());
      const seen = await within(30_000, "the exec under way", outcome);
      check(
        ["closed", "backend_lost", "aborted", "137 SIGKILL"].includes(`${seen}`),
        `the running exec returned ${seen}`,
      );
      const end = await within(
        30_000,
        "wait",
        child.wait().catch((error: unknown) => (error as { code?: string }).code),
      );
      check(typeof end === "string" || end?.exitCode === 137, `the spawned process ended with ${JSON.stringify(end)}`);
      await answers(await open());
    },
  },
  {
    id: "lifecycle.independent",
    title: "independent sandboxes",
    requirement: "Neither the files nor the teardown of one sandbox affect another.",
    async run({ sandbox, open }) {
      const other = await open();
      await sandbox.writeFile("file", "mine");
      equal(await other.readFile("file"), null, "a file of the one in the other");
      await script(other, "echo theirs > file");
      equal(await sandbox.readFile("file"), "mine", "the file of the one");
      await other.teardown();
      equal(await sandbox.readFile("file"), "mine", "the file of the one after the other's end");
    },
  },
  {
    id: "lifecycle.independent-outside",
    title: "independent processes and outside files",
    requirement: "A sandbox does not see another's processes, nor its files outside the work directory.",
    needs: ({ isolation }) => (isolation === "none" ? "capabilities.isolation is none" : undefined),
    async run(context) {
      const { sandbox, open } = context;
      const other = await open();
      const outside = await makeOutside(context);
      equal((await other.exec({ argv: ["ls", outside.path] })).stdout, "", "a directory of the one in the other");
      const word = `kit-${outside.secret}`;
      await using child = await sandbox.spawn({ argv: scriptArgv("while :; do sleep 1; done", word) });
      await until("it is listed", async () =>
        (await sandbox.processes()).some(({ id }) => id === child.id) ? true : undefined,
      );
      const seen = await script(other, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; :");
      check(!seen.includes(word), "a process of the one is seen in the other");
    },
  },
  {
    id: "lifecycle.host-hidden",
    title: "hidden host files",
    requirement: "A host file that was not mounted does not exist in the sandbox.",
    needs: ({ isolation }) => (isolation === "none" ? "capabilities.isolation is none" : undefined),
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      await writeFile(`${host}/canary`, "host content", { mode: 0o644 });
      const result = await sandbox.exec({ argv: scriptArgv('cat "$1/canary"; echo "said $?"', host) });
      check(!result.stdout.includes("host content"), "a command reads a file of the host");
      check(result.stdout.includes("said 1"), `cat did not fail: ${result.stdout}`);
    },
  },
  {
    id: "lifecycle.parallel-open",
    title: "opening many at once",
    requirement: "Eight sandboxes opened at once all work and are all torn down.",
    async run({ open }) {
      const sandboxes = await Promise.all(Array.from({ length: 8 }, () => open()));
      equal(new Set(sandboxes.map(({ id }) => id)).size, 8, "different ids");
      await Promise.all(sandboxes.map((sandbox, i) => sandbox.writeFile("n", `${i}`)));
      const seen = await Promise.all(sandboxes.map((sandbox) => script(sandbox, "cat n")));
      equal(seen, ["0", "1", "2", "3", "4", "5", "6", "7"], "their files");
      await within(60_000, "teardown", Promise.all(sandboxes.map((sandbox) => sandbox.teardown())));
    },
  },
  {
    id: "lifecycle.lost",
    title: "a lost sandbox",
    requirement:
      "When the sandbox dies under a command, that is `backend_lost`, never an exit code; teardown still works.",
    needs: (_, { host }) => (host?.sever ? undefined : "the harness cannot sever a sandbox"),
    async run({ open, harness }) {
      const sandbox = await open();
      let isUp = (): void => undefined;
      const up = new Promise<void>((resolve) => {
        isUp = resolve;
      });
      const call = sandbox.exec({ argv: scriptArgv("echo up; sleep 60"), onStdout: () => isUp() });
      await Promise.race([up, call]);
      await harness.host?.sever?.(sandbox);
      await refuses("backend_lost", "the exec under way", () => within(30_000, "the exec under way", call));
      await refuses(["backend_lost", "closed"], "the next exec", () => sandbox.exec({ argv: ["true"] }));
      await within(60_000, "teardown", sandbox.teardown());
    },
  },
];

function openDescriptors(): number | undefined {
  try {
    return readdirSync("/proc/self/fd").length;
  } catch {
    return undefined;
  }
}

function calls(sandbox: Sandbox, host: string): Record<string, () => Promise<unknown>> {
  return {
    exec: () => sandbox.exec({ argv: ["true"] }),
    shell: () => sandbox.shell("true"),
    spawn: () => sandbox.spawn({ argv: ["true"] }),
    processes: () => sandbox.processes(),
    process: () => sandbox.process("p1"),
    uploadFiles: () => sandbox.uploadFiles([{ path: "f", content: "x" }]),
    writeFile: () => sandbox.writeFile("f", "x"),
    writeFiles: () => sandbox.writeFiles({ f: "x" }),
    readFile: () => sandbox.readFile("f"),
    readBytes: () => sandbox.readBytes("f"),
    stat: () => sandbox.stat("f"),
    listDirectory: () => sandbox.listDirectory(),
    deleteFile: () => sandbox.deleteFile("f"),
    makeDirectory: () => sandbox.makeDirectory("d"),
    setWorkdir: () => sandbox.setWorkdir("."),
    exportDirectory: () => sandbox.exportDirectory(".", `${host}/out`),
    refreshFromHost: () => sandbox.refreshFromHost(host, "."),
    snapshot: () => sandbox.snapshot(),
    restore: () => sandbox.restore("x"),
    fork: () => sandbox.fork(),
    changes: () => sandbox.changes(),
    url: () => sandbox.url(8080),
    waitForPort: () => sandbox.waitForPort(8080),
  };
}
