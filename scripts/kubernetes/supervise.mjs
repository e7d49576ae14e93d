import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeCredentials } from "./certificates.mjs";
import { serveControl } from "./control.mjs";
import { ADDRESS, startControlPlane } from "./control-plane.mjs";
import { createFront } from "./front.mjs";
import { importImage, startNode } from "./node.mjs";
import { createPrograms } from "./programs.mjs";
import { callServer, whenTrue } from "./wait.mjs";

/**
 * Runs a cluster in the namespaces that it was started in. Gets what is wanted, and the socket of the server's address, from its parent; prints
 * the path of `cluster.json` once all nodes are ready. The first program that ends unasked ends all.
 */
const say = (text) => process.stderr.write(`${text}\n`);
process.on("uncaughtException", (error) => {
  say(error.stack);
  process.exit(1);
});
process.once("disconnect", () => process.exit(1));
process.once("message", (wanted, socket) => void supervise(wanted, socket));

async function supervise({ programs: built, folder, port, groups, nodes: count, images }, socket) {
  const startedAt = performance.now();
  const own = groups.map(({ name, options }) => ({ folder: `/sys/fs/cgroup/${name}`, options }));
  sh(remountGroups(own));
  const nodeList = Array.from({ length: count }, (_, index) => describeNode(folder, own, index + 1));
  sh(`ip link set lo up; ip link add nodes type bridge; ip addr add ${ADDRESS}/24 dev nodes; ip link set nodes up`);

  const place = {
    folder,
    bin: (name) => join(built, "bin", name),
    built,
    write,
    remount: remountGroups(own),
    groups: own,
  };
  const programs = createPrograms({ folder, built, onLost: (text, isOver) => (isOver ? fail(text) : say(text)) });
  const credentials = makeCredentials(place, nodeList);
  const server = { token: credentials.tokens.admin, ca: credentials.ca };
  say("server");
  startControlPlane({ place, programs, credentials });
  await whenTrue("the server", async () => (await callServer(server, "/readyz")).status === 200);
  say("nodes");
  for (const node of nodeList) {
    await startNode({ place, programs, credentials, node, nodes: nodeList });
  }
  for (const [name, archive] of Object.entries(images))
    await importImage({ place, programs, nodes: nodeList, name, archive });
  await whenTrue("the nodes", async () => (await readyNodes(server)) === count);
  const account = "/api/v1/namespaces/default/serviceaccounts/default";
  await whenTrue("the default service account", async () => (await callServer(server, account)).status === 200);

  const front = createFront(socket);
  const control = join(folder, "control");
  await serveControl(control, {
    programs,
    front,
    nodes: nodeList,
    import: (name, archive, config) => importImage({ place, programs, nodes: nodeList, name, archive, config }),
  });
  const address = `https://127.0.0.1:${port}`;
  const path = write("cluster.json", {
    server: address,
    kubeconfig: credentials.writeConfig("kubeconfig", address, { token: credentials.tokens.admin }),
    weakKubeconfig: credentials.writeConfig("kubeconfig-weak", address, { token: credentials.tokens.weak }),
    inside: `https://${ADDRESS}:6443`,
    tokens: credentials.tokens,
    accountKey: credentials.accountKey,
    ca: credentials.ca,
    control,
    logs: join(folder, "log"),
    nodes: nodeList.map(({ name, address: at }) => ({ name, address: at })),
    images: Object.keys(images),
    startMs: Math.round(performance.now() - startedAt),
  });
  process.stdout.write(`${path}\n`);

  function write(name, content) {
    const file = join(folder, name);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content, null, 2), { mode: 0o600 });
    return file;
  }
}

async function readyNodes(server) {
  const { items = [] } = (await callServer(server, "/api/v1/nodes")).body;
  const isReady = ({ type, status }) => type === "Ready" && status === "True";
  return items.filter(({ status }) => status.conditions?.some(isReady)).length;
}

/** A node's names and addresses, all of which exist in the cluster's own network only. */
function describeNode(folder, groups, number) {
  const name = `node-${number}`;
  return {
    name,
    address: `10.96.128.${10 + number}`,
    pods: `10.97.${number}.0/24`,
    folder: join(folder, name),
    groups: groups.map((group) => join(group.folder, name)),
  };
}

/** The hierarchies as this cgroup namespace sees them, in place of the machine's. */
function remountGroups(groups) {
  const mounts = groups.map(
    ({ folder, options }) => `mkdir -p ${folder}; mount -t cgroup -o ${options} cgroup ${folder}`,
  );
  return [
    "umount -l -R /sys/fs/cgroup",
    "mount -t sysfs sysfs /sys",
    "mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup",
    ...mounts,
  ].join("; ");
}

function sh(script) {
  execFileSync("sh", ["-ec", script], { stdio: ["ignore", "ignore", "inherit"] });
}

function fail(text) {
  say(text);
  process.exit(1);
}
