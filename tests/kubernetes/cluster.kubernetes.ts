import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { describeUnless } from "../support/describe-unless.js";
import { whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { childrenOf } from "../support/processes/descendants.js";
import { processesWith } from "../support/processes/host-processes.js";
import { readQuietly } from "../support/processes/token-watch.js";

const UP = fileURLToPath(new URL("../../scripts/kubernetes/up.mjs", import.meta.url));

/** A cluster of its own, by the command that users have. */
async function startCluster(): Promise<{ launcher: ChildProcess; keeper: number; folder: string }> {
  const launcher = spawn(process.execPath, [UP, "--no-images"], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void launcher.kill("SIGKILL"));
  const lines = createInterface({ input: launcher.stdout as NodeJS.ReadableStream });
  for await (const line of lines) {
    if (!line.startsWith("CLUSTER=")) continue;
    const folder = dirname(line.slice("CLUSTER=".length));
    const [keeper = 0] = childrenOf(launcher.pid ?? 0);
    return { launcher, keeper, folder };
  }
  throw new Error("the cluster did not start");
}

/** The control groups of a cluster. */
function groupsOf(folder: string): string[] {
  const groups = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => / - cgroup /.test(line))
    .flatMap((line) => `${line.split(" ")[4]}/${basename(folder)}`)
    .filter((path) => existsSync(path));
  return [...new Set(groups)];
}

/** The processes in a group and those below it. */
function membersOf(group: string): string[] {
  const below = readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const own = readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean);
  return [...own, ...below.flatMap(({ name }) => membersOf(join(group, name)))];
}

function leftOf(folder: string): string[] {
  const name = basename(folder);
  const mounts = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(name));
  return [...processesWith(name).map(({ argv }) => argv.join(" ")), ...mounts, ...groupsOf(folder)];
}

describeUnless(whyNoTestCluster(), "a cluster of tests", {}, () => {
  it("leaves nothing behind, whichever of its processes is killed", async () => {
    const first = await startCluster();
    expect(leftOf(first.folder).length).toBeGreaterThan(5);
    process.kill(first.keeper, "SIGKILL");
    await expect.poll(() => processesWith(basename(first.folder))).toEqual([]);
    // Not all of them have its name in their arguments; while one still ends, nobody removes its group.
    await expect.poll(() => groupsOf(first.folder).flatMap(membersOf)).toEqual([]);
    // No one was left to remove its folder and its groups: the next start does.
    const second = await startCluster();
    expect(leftOf(first.folder)).toEqual([]);
    expect(existsSync(first.folder)).toBe(false);

    second.launcher.kill("SIGKILL");
    await expect.poll(() => existsSync(second.folder)).toBe(false);
    expect(leftOf(second.folder)).toEqual([]);
  });

  it("ends with the shell of an npm that is ended", async () => {
    const program = [process.execPath, UP, "--no-images"];
    const shell = spawn("sh", ["-c", '"$@"; exit', "sh", ...program], { stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => void shell.kill("SIGKILL"));
    // While it starts; a test above ends one that runs.
    for await (const line of createInterface({ input: shell.stdout })) if (line.includes("cluster: ")) break;
    const [launcher = 0] = childrenOf(shell.pid ?? 0);
    const [keeper = 0] = childrenOf(launcher);
    const isRunning = (pid: number): boolean => readQuietly(`/proc/${pid}/cmdline`) !== "";
    onTestFinished(() => void (isRunning(launcher) && process.kill(launcher)));
    expect([launcher, keeper].map(isRunning)).toEqual([true, true]);
    shell.kill();
    await expect.poll(() => [launcher, keeper].filter(isRunning)).toEqual([]);
  });
});
