import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { ClusterNotPossible, isBuilt, NOT_HERE } from "./cache.mjs";
import { COMPONENTS, compile } from "./compile.mjs";
import { openPackages } from "./packages.mjs";
import { repairSource } from "./repair-source.mjs";

/**
 * Builds the programs of a cluster into the folder of the first argument, from Debian's packages alone: its source package of Kubernetes carries
 * everything that it is compiled from. Nothing is installed. Runs under a lock, and prints a line for each phase.
 */
const GO = "golang-1.19";
/** The series of Kubernetes that this compiler and these steps are for. */
const SERIES = "1.20";
const BINARIES = [
  ...["usr/bin/etcd", "usr/bin/containerd", "usr/bin/containerd-shim-runc-v2", "usr/bin/ctr", "usr/sbin/runc"],
];
const NETWORK_PLUGINS = ["host-local", "loopback", "ptp"];
const PREFIX = "building-";

async function build(folder) {
  // Another may have built it while this one waited for the lock.
  if (isBuilt(folder)) return;
  const cache = dirname(folder);
  // What killed builds left, and what older recipes made.
  for (const name of readdirSync(cache).filter((each) => each !== "lock" && each !== basename(folder)))
    remove(join(cache, name));
  remove(folder);
  const work = join(cache, `${PREFIX}${process.pid}`);
  mkdirSync(work);
  try {
    const result = join(work, "result");
    const contents = await make(work, result);
    writeFileSync(join(result, "contents"), contents);
    renameSync(result, folder);
  } finally {
    remove(work);
  }
}

async function make(work, result) {
  console.log("package lists");
  const packages = await openPackages(join(work, "packages"));
  const version = packages.sourceVersion("kubernetes");
  const release = /really(\d+(?:\.\d+)+)/.exec(version ?? "")?.[1] ?? version?.split("-")[0];
  if (!release?.startsWith(`${SERIES}.`)) {
    throw new ClusterNotPossible(
      `Kubernetes ${SERIES} is built from Debian 12's source package; this system's is ${version ?? "not there"}`,
    );
  }
  console.log("downloads");
  const names = [`${GO}-go`, `${GO}-src`, "etcd-server", "containerd", "runc", "containernetworking-plugins"];
  const system = join(work, "system");
  const versions = packages.unpack(names, system);
  const source = join(work, "path", "src", "k8s.io", "kubernetes");
  packages.unpackSource("kubernetes", source);
  repairSource(source);
  const all = await compile({ work, source, release, go: join(system, "usr", "lib", GO.replace("lang", "")) });
  for (const part of ["bin", "cni"]) mkdirSync(join(result, part), { recursive: true });
  const bin = (name) => join(result, "bin", name);
  cpSync(all, bin("kubernetes"));
  for (const name of COMPONENTS) symlinkSync("kubernetes", bin(name));
  for (const path of BINARIES) cpSync(join(system, path), bin(basename(path)));
  for (const name of NETWORK_PLUGINS) cpSync(join(system, "usr/lib/cni", name), join(result, "cni", name));
  for (const part of ["bin", "cni"])
    for (const name of readdirSync(join(result, part))) chmodSync(join(result, part, name), 0o755);
  return `kubernetes ${release}\n${versions.join("\n")}\n`;
}

function remove(path) {
  // Node's own rm takes minutes for the many files of a compiler's cache; the compiler makes folders read-only, too.
  if (existsSync(path)) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
}

await build(process.argv[2]).catch((error) => {
  console.error(error.message);
  process.exitCode = error instanceof ClusterNotPossible ? NOT_HERE : 1;
});
