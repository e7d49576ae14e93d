import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ADDRESS } from "./control-plane.mjs";
import { enterGroups, makeGroup } from "./groups.mjs";
import { packImage } from "./image-archive.mjs";
import { whenTrue } from "./wait.mjs";

const PAUSE = "localhost/glovebox-test/pause:1";
const SOCKET = "/run/containerd/containerd.sock";
/** What the kubelet wants of the machine. It finds it, and so doesn't write it. */
const SETTINGS = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
};
/** As many processors as a node says to have. Those of tests do little, and wait for each other only where there is too little of something real. */
const PROCESSORS = 16;
const PROCESSOR_FOLDER = "/sys/devices/system/node";
const PLUGINS_WITHOUT = [
  "internal.v1.opt",
  ...["btrfs", "zfs", "devmapper", "aufs"].map((name) => `snapshotter.v1.${name}`),
];
const OVERLAY = 0x794c7630;
const CAP_SYS_RESOURCE = 24n;

/** Starts a node: its namespaces, its network, containerd and the kubelet. */
export async function startNode({ place, programs, credentials, node, nodes }) {
  const { folder, bin, write } = place;
  for (const part of ["log", "kubelet", "containerd", "volumes", "network"])
    mkdirSync(join(node.folder, part), { recursive: true });
  for (const group of node.groups) makeGroup(group);
  await makeNamespaces({ place, programs, node });
  connect(node, nodes);
  write(`${node.name}/network/10-pods.conflist`, networkConfig(node));
  const config = write(`${node.name}/containerd.toml`, containerdConfig(place, node));
  programs.start(`${node.name}-containerd`, [bin("containerd"), "--config", config, "--log-level", "warn"], { node });
  await whenTrue(
    `containerd of ${node.name}`,
    async () => (await programs.runIn(node, [bin("ctr"), "version"])).code === 0,
  );
  await importPause({ place, programs, node });
  const kubelet = write(`${node.name}/kubelet.json`, kubeletConfig(credentials, node));
  const access = credentials.writeConfig(
    `${node.name}/kubeconfig`,
    `https://${ADDRESS}:6443`,
    credentials.certificate(node.name),
  );
  programs.start(
    `${node.name}-kubelet`,
    [
      ...[bin("kubelet"), `--config=${kubelet}`, `--kubeconfig=${access}`, `--hostname-override=${node.name}`],
      ...[
        `--node-ip=${node.address}`,
        `--root-dir=${join(node.folder, "kubelet")}`,
        `--cert-dir=${join(folder, "kubelet-keys")}`,
      ],
      ...[`--volume-plugin-dir=${join(node.folder, "volumes")}`, "--container-runtime=remote"],
      ...[`--container-runtime-endpoint=unix://${SOCKET}`, "--runtime-cgroups=/", "--kubelet-cgroups=/"],
    ],
    { node },
  );
}

/** Gives every node an image, from the archive of its file system. A name without a registry is one that an engine would look for at Docker Hub. */
export async function importImage({ place, programs, nodes, name, archive, config }) {
  const names = [/^[^/]+[.:][^/]*\//.test(name) ? name : `docker.io/${name}`];
  const pack = await packImage(place.folder, { archive, names, own: config });
  for (const node of nodes) await load({ place, programs, node, pack });
  rmSync(pack);
}

/** The program of the image that holds a pod's namespaces is BusyBox, which is on this machine anyway. */
async function importPause({ place, programs, node }) {
  const root = join(node.folder, "pause");
  const archive = `${root}.tar`;
  const copy = `mkdir -p ${root}/bin; cp "$(readlink -f "$(command -v busybox)")" ${root}/bin/sleep; chmod 755 ${root}/bin/sleep`;
  execFileSync("sh", ["-ec", `${copy}; tar --owner=0 --group=0 -C ${root} -cf ${archive} .`]);
  await load({ place, programs, node, pack: await packImage(place.folder, { archive, names: [PAUSE] }) });
}

async function load({ place, programs, node, pack }) {
  const command = [place.bin("ctr"), "--namespace", "k8s.io", "images", "import", "--all-platforms", pack];
  const { code, stderr } = await programs.runIn(node, command);
  if (code !== 0) throw new Error(`${node.name} did not take ${pack}: ${stderr.trim()}`);
}

/**
 * A process holds the node's namespaces. The folders in which the kubelet, containerd and its shims have fixed paths are the node's own; those
 * of this machine are out of sight.
 */
async function makeNamespaces({ place, programs, node }) {
  for (const [key, value] of Object.entries(SETTINGS)) place.write(`settings/${key}`, `${value}\n`);
  const processors = join(place.folder, "processors");
  if (!existsSync(processors)) pretendProcessors(processors);
  const isUp = join(node.folder, "is-up");
  const script = [
    place.remount,
    ...["/run", "/var/lib"].map((path) => `mount -t tmpfs -o mode=755 tmpfs ${path}`),
    `mount --bind ${join(node.folder, "log")} /var/log`,
    ...Object.keys(SETTINGS).map((key) => `mount --bind ${join(place.folder, "settings", key)} /proc/sys/${key}`),
    `if [ -d ${PROCESSOR_FOLDER} ]; then mount --bind ${processors} ${PROCESSOR_FOLDER}; fi`,
    `echo ${node.name} > /proc/sys/kernel/hostname`,
    `touch ${isUp}`,
    "exec sleep infinity",
  ].join("; ");
  const unshare = `exec unshare --mount --net --uts --ipc --cgroup --propagation private sh -ec "$1"`;
  const holder = programs.start(
    node.name,
    ["sh", "-c", `${enterGroups(node.groups)} && ${unshare}`, "holder", script],
    { isOnce: true },
  );
  node.holder = holder.child.pid;
  await whenTrue(`the namespaces of ${node.name}`, () => existsSync(isUp), 20);
}

/** A folder like the kernel's, in which the kubelet counts processors and memory. */
function pretendProcessors(folder) {
  const node = join(folder, "node0");
  mkdirSync(join(node, "hugepages"), { recursive: true });
  writeFileSync(join(node, "meminfo"), readFileSync("/proc/meminfo", "utf8").replaceAll(/^/gm, "Node 0 "));
  for (let number = 0; number < PROCESSORS; number++) {
    const processor = join(node, `cpu${number}`);
    mkdirSync(join(processor, "topology"), { recursive: true });
    const values = { online: 1, "topology/core_id": number, "topology/physical_package_id": 0 };
    for (const [name, value] of Object.entries(values)) writeFileSync(join(processor, name), `${value}\n`);
  }
}

/** A cable to the other nodes and the control plane, and ways to the pods. There is none to anywhere else. */
function connect(node, nodes) {
  const sh = (script) => execFileSync("sh", ["-ec", script], { stdio: ["ignore", "ignore", "inherit"] });
  const inside = `nsenter -t ${node.holder} -n`;
  sh(
    [
      `ip link add ${node.name} type veth peer name eth0 netns ${node.holder}`,
      `ip link set ${node.name} master nodes up`,
      `ip route add ${node.pods} via ${node.address}`,
      `${inside} ip link set lo up`,
      `${inside} ip addr add ${node.address}/24 dev eth0`,
      `${inside} ip link set eth0 up`,
      `${inside} sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'`,
      ...nodes
        .filter((other) => other !== node)
        .map(({ pods, address }) => `${inside} ip route add ${pods} via ${address}`),
    ].join("; "),
  );
}

/** Each pod has a cable of its own to the node, so that what goes from pod to pod passes the node's rules, if it has any. */
function networkConfig({ pods }) {
  const addresses = {
    type: "host-local",
    dataDir: "/run/pod-addresses",
    ranges: [[{ subnet: pods }]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
  return { cniVersion: "0.4.0", name: "pods", plugins: [{ type: "ptp", ipMasq: false, ipam: addresses }] };
}

function containerdConfig({ folder, built, bin }, node) {
  const snapshots = hasOverlay(folder) ? "overlayfs" : "native";
  const text = (value) => JSON.stringify(value);
  return `version = 2
root = ${text(join(node.folder, "containerd"))}
state = "/run/containerd"
disabled_plugins = ${text([...PLUGINS_WITHOUT, "tracing.processor.v1.otlp"].map((name) => `io.containerd.${name}`))}
[grpc]
address = ${text(SOCKET)}
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = ${text(PAUSE)}
restrict_oom_score_adj = ${!hasCapability(CAP_SYS_RESOURCE)}
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = ${text(join(built, "cni"))}
conf_dir = ${text(join(node.folder, "network"))}
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = ${text(snapshots)}
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = ${text(bin("runc"))}
SystemdCgroup = false
`;
}

function kubeletConfig({ keys }, node) {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: keys("ca.crt") },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: keys(`${node.name}.crt`),
    tlsPrivateKeyFile: keys(`${node.name}.key`),
    cgroupDriver: "cgroupfs",
    failSwapOn: false,
    protectKernelDefaults: true,
    makeIPTablesUtilChains: false,
    hairpinMode: "none",
    oomScoreAdj: 0,
    resolvConf: "",
    serializeImagePulls: false,
    evictionHard: {
      "memory.available": "100Mi",
      "nodefs.available": "1%",
      "nodefs.inodesFree": "1%",
      "imagefs.available": "1%",
    },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    volumeStatsAggPeriod: "5s",
    nodeStatusUpdateFrequency: "1s",
    nodeStatusReportFrequency: "1m",
    nodeLeaseDurationSeconds: 20,
  };
}

function hasOverlay(folder) {
  // One overlay can't be the upper layer of another.
  return /\boverlay$/m.test(readFileSync("/proc/filesystems", "utf8")) && statfsSync(folder).type !== OVERLAY;
}

/** Without CAP_SYS_RESOURCE no one can make a process less likely to be killed, and runc dies of it. */
function hasCapability(number) {
  const mask = /^CapEff:\s*(\w+)/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  return ((BigInt(`0x${mask}`) >> number) & 1n) === 1n;
}
