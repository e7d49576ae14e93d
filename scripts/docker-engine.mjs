import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { lastWords } from "./last-words.mjs";
import { hasCommand } from "./system-parts.mjs";

/**
 * A separate Docker engine with its own network, mounts and processes, and all its files in one folder. It ends, and removes
 * everything it made, when it is stopped or when the process that it was started for ends.
 */
const START_TIMEOUT = 300_000;

/** Why this machine can't start an engine; undefined if it can. */
export function whyNoEngine() {
  if (process.platform !== "linux") return "an own Docker engine needs Linux";
  if (process.getuid?.() !== 0) return "an own Docker engine needs root";
  const missing = ["dockerd", "containerd", "unshare", "ip", "iptables"].filter((name) => !hasCommand(name));
  return missing.length > 0 ? `not installed: ${missing.join(", ")} (package docker.io)` : undefined;
}

/** Starts an engine in a folder for the lifetime of a process; `dataSize` limits its disk in bytes, `env` is its environment. */
export async function startEngine(folder, { leasePid = process.pid, dataSize, env = {} } = {}) {
  mkdirSync(folder, { recursive: true });
  const script = fileURLToPath(import.meta.url);
  const args = [script, folder, String(leasePid), ...(dataSize ? [String(dataSize)] : [])];
  const options = { detached: true, stdio: "ignore", cwd: "/", env: { ...process.env, ...env } };
  const keeper = spawn(process.execPath, args, options);
  keeper.unref();
  writeFileSync(join(folder, "keeper.pid"), String(keeper.pid));
  await waitForEngine(folder, keeper);
  return describeEngine(folder);
}

/** The engine that was started in this folder. */
export function describeEngine(folder) {
  const keeper = Number(readFileSync(join(folder, "keeper.pid"), "utf8"));
  return { host: `unix://${join(folder, "docker.sock")}`, folder, keeper, daemon: () => daemonOf(keeper) };
}

/** Stops it and waits until everything is removed. */
export async function stopEngine({ keeper, folder }) {
  signal(keeper, "SIGTERM");
  for (let i = 0; i < 600 && existsSync(folder); i++) await delay(50);
}

/** Resolves once the engine answers. */
export async function waitForEngine(folder, keeper, timeout = START_TIMEOUT) {
  const end = performance.now() + timeout;
  while (performance.now() < end) {
    if (await answers(join(folder, "docker.sock"))) return;
    if (keeper !== undefined && keeper.exitCode !== null) break;
    await delay(50);
  }
  const log = join(folder, "log");
  throw new Error(
    `the Docker engine did not start: ${existsSync(log) ? lastWords(readFileSync(log, "utf8")) : "it wrote no log"}`,
  );
}

function answers(socketPath) {
  return new Promise((resolve) => {
    const call = request({ socketPath, path: "/_ping", timeout: 2_000 }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    call.on("timeout", () => call.destroy());
    call.on("error", () => resolve(false));
    call.end();
  });
}

/** The process of the engine itself, a child of the one that restarts it when it ends. */
function daemonOf(keeper) {
  const below = (pid) => childrenOf(pid).flatMap((child) => [child, ...below(child)]);
  return below(keeper).find((pid) => nameOf(pid) === "dockerd");
}

function childrenOf(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads
      .flatMap((id) => readFileSync(`/proc/${pid}/task/${id}/children`, "utf8").trim().split(" "))
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

function nameOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/** The script in the namespaces: runs the engine, and restarts it when it ends. */
function script(folder, dataSize) {
  const data = join(folder, "data");
  const mount = dataSize ? `mount -t tmpfs -o size=${dataSize} tmpfs ${data} || exit 1` : "true";
  const options = [
    `--data-root ${data}`,
    `--exec-root ${join(folder, "exec")}`,
    `--host unix://${join(folder, "docker.sock")}`,
    `--pidfile ${join(folder, "pid")}`,
    `--cgroup-parent ${cgroupOf(folder)}`,
    "--bip 10.213.0.1/24",
    "--default-address-pool base=10.214.0.0/16,size=24",
  ];
  return [
    "ip link set lo up",
    `mkdir -p ${data}`,
    mount,
    `while :; do rm -f ${join(folder, "pid")}; dockerd ${options.join(" ")} >> ${join(folder, "log")} 2>&1; sleep 0.1; done`,
  ].join("\n");
}

function cgroupOf(folder) {
  return `/glovebox-engine-${folder.replaceAll(/[^A-Za-z0-9]+/g, "-").slice(-60)}`;
}

/** Keeps the engine running until it should stop or its owner is gone. */
async function keep(folder, leasePid, dataSize) {
  const namespaces = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"];
  const inside = spawn("unshare", [...namespaces, "sh", "-c", script(folder, dataSize)], { stdio: "ignore", cwd: "/" });
  let isOver = false;
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"])
    process.on(name, () => {
      isOver = true;
    });
  inside.on("exit", () => {
    isOver = true;
  });
  while (!isOver && signal(leasePid, 0)) await delay(100);
  inside.kill("SIGKILL");
  if (inside.exitCode === null && inside.signalCode === null)
    await new Promise((resolve) => inside.once("exit", resolve));
  removeGroups(cgroupOf(folder));
  rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
}

/** Removes the control groups of the containers, which are empty now or in a moment. */
function removeGroups(name) {
  const root = "/sys/fs/cgroup";
  const places = existsSync(root) ? [root, ...readdirSync(root).map((controller) => join(root, controller))] : [];
  const own = places.map((path) => join(path, name)).filter((path) => existsSync(path));
  for (const place of own) thaw(place);
  for (const place of own) {
    for (let i = 0; i < 50 && !removeGroup(place); i++)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  }
}

function removeGroup(path) {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory() && !removeGroup(join(path, entry.name))) return false;
    }
    rmdirSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Thaws paused containers: a frozen process can't end, even when killed. */
function thaw(path) {
  try {
    for (const [name, text] of [
      ["freezer.state", "THAWED"],
      ["cgroup.freeze", "0"],
    ]) {
      if (existsSync(join(path, name))) writeFileSync(join(path, name), text);
    }
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory()) thaw(join(path, entry.name));
  } catch {
    // It is gone already.
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [folder, leasePid, dataSize] = process.argv.slice(2);
  await keep(folder, Number(leasePid), dataSize);
}
