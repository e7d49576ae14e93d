import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { enterGroups, hierarchies, makeGroup, membersOf, removeGroups } from "./groups.mjs";

/**
 * Keeps a cluster: makes its namespaces, its control groups and its folder, and removes all of them when its standard input ends. Every process
 * of the cluster is in one PID namespace. So when its first process is killed all of them end, and mounts, interfaces and networks with them.
 * If this process itself is killed the kernel still does that; the next keeper removes the groups and the folder.
 */
const PREFIX = "glovebox-kube-";
const FIRST_PROCESS = '"$@" & wait $!';

const say = (text) => process.stderr.write(`${text}\n`);
await sweep();
const folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
const groups = hierarchies().map((each) => ({ ...each, folder: join(each.folder, basename(folder)) }));
let cluster;
let ending;

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => end(0));
process.on("uncaughtException", (error) => {
  say(error.stack);
  void end(1);
});
const lines = createInterface({ input: process.stdin });
lines.once("line", (line) => start(JSON.parse(line)));
lines.once("close", () => end(0));

function start(wanted) {
  for (const group of groups) makeGroup(group.folder);
  const server = createServer();
  server.listen(0, "127.0.0.1", () => {
    const namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts", "--cgroup", "--propagation", "private"];
    const supervisor = [process.execPath, fileURLToPath(new URL("supervise.mjs", import.meta.url))];
    const inside = [
      "unshare",
      ...namespaces,
      "--kill-child=SIGKILL",
      "--mount-proc",
      "sh",
      "-c",
      FIRST_PROCESS,
      "first",
      ...supervisor,
    ];
    const script = `${enterGroups(groups.map((group) => group.folder))} && exec setpriv --pdeathsig KILL "$@"`;
    cluster = spawn("sh", ["-c", script, "enter", ...inside], {
      stdio: ["ignore", "inherit", "pipe", "ipc"],
      cwd: folder,
    });
    createInterface({ input: cluster.stderr }).on("line", (line) => {
      // unshare has something to say about being killed.
      if (!line.includes("sigprocmask")) say(line);
    });
    cluster.once("exit", () => end(1));
    cluster.once("error", () => end(1));
    // The address is one of this machine, so its socket goes in where the cluster has a network of its own.
    cluster.send({ ...wanted, folder, port: server.address().port, groups }, server, () => server.close());
  });
}

function end(code) {
  ending ??= finish(code);
  return ending;
}

async function finish(code) {
  if (cluster !== undefined && cluster.exitCode === null && cluster.signalCode === null) {
    const gone = new Promise((resolve) => cluster.once("exit", resolve));
    // unshare waits for the first process, whose end is that of all others.
    for (const pid of childrenOf(cluster.pid)) process.kill(pid, "SIGKILL");
    if (childrenOf(cluster.pid).length === 0) cluster.kill("SIGKILL");
    await Promise.race([gone, delay(60_000)]);
  }
  for (const left of await removeGroups(groups.map((group) => group.folder))) say(`still in use: ${left}`);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  process.exit(code);
}

function childrenOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Removes what killed keepers left, once nothing runs in it. */
async function sweep() {
  const groupsOf = (name) => hierarchies().map((each) => join(each.folder, name));
  const isLeft = (name) => {
    const owner = name.slice(PREFIX.length).split("-")[0];
    return !existsSync(`/proc/${owner}`) && groupsOf(name).flatMap(membersOf).length === 0;
  };
  const places = [tmpdir(), ...hierarchies().map((each) => each.folder)];
  const names = new Set(places.flatMap((place) => readdirSync(place)).filter((name) => name.startsWith(PREFIX)));
  for (const name of [...names].filter(isLeft)) {
    await removeGroups(groupsOf(name), 1_000);
    rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}
