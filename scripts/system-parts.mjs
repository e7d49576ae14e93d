import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { run } from "./processes.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";

/** What Glovebox needs from the system: any one of `commands` is enough. musl makes the guest smaller but is optional. */
const parts = [
  { commands: ["bwrap"], packages: ["bubblewrap"] },
  { commands: ["git"], packages: ["git"] },
  { commands: [process.env.CC, "musl-gcc", "gcc", "cc"], packages: ["gcc", "libc6-dev", "musl-tools"] },
];

/** What only tests and a release need: other compilers for the guest, and an emulator to run it. */
const extras = [
  { commands: ["musl-gcc"], packages: ["musl-tools"] },
  { commands: ["aarch64-linux-gnu-gcc"], packages: ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"] },
  { commands: ["qemu-aarch64-static"], packages: ["qemu-user-static"] },
];

/** What container tests need: an engine, and the tools that make images. */
const containers = [
  { commands: ["dockerd"], packages: ["docker.io"] },
  { commands: ["ip"], packages: ["iproute2"] },
  { commands: ["docker-registry"], packages: ["docker-registry"] },
  { commands: ["busybox"], packages: ["busybox-static"] },
  { commands: ["debootstrap"], packages: ["debootstrap"] },
];

/** What the test of the report needs: a browser. */
const browsers = [{ commands: ["chromium", "chromium-browser"], packages: ["chromium"] }];

/** What the completion tests need: the shells. */
const shells = [
  { commands: ["zsh"], packages: ["zsh"] },
  { commands: ["fish"], packages: ["fish"] },
];

/** What `npm run test:cgroup2` needs: an emulator, and a tool that makes the system of its machine. */
const machines = [
  { commands: ["qemu-system-x86_64"], packages: ["qemu-system-x86"] },
  { commands: ["mmdebstrap"], packages: ["mmdebstrap"] },
  { commands: ["mke2fs"], packages: ["e2fsprogs"] },
];

/** What `npm run test:egress` runs: clients in other languages, build tools, and a clock that can be wrong. Libraries are known by a folder. */
const clients = [
  { commands: ["curl"], packages: ["curl"] },
  { commands: ["wget"], packages: ["wget"] },
  { commands: ["python3"], packages: ["python3-minimal"] },
  { commands: ["javac"], packages: ["default-jdk-headless"] },
  { commands: ["go"], packages: ["golang-go"] },
  { commands: ["/usr/bin/cargo"], packages: ["cargo"] },
  { commands: [], folder: "/usr/share/doc/librust-ureq-dev", packages: ["librust-ureq-dev"] },
  { commands: [], folder: "/usr/share/doc/librust-native-tls-dev", packages: ["librust-native-tls-dev"] },
  { commands: [], folder: "/usr/lib/python3/dist-packages/grpc", packages: ["python3-grpcio"] },
  { commands: ["make"], packages: ["make"] },
  { commands: ["faketime"], packages: ["faketime"] },
];

/** What a Kubernetes of tests needs, besides what is built for it: tools for networks and certificates, and BusyBox. */
const clusters = [
  { commands: ["ip"], packages: ["iproute2"] },
  { commands: ["nft"], packages: ["nftables"] },
  { commands: ["openssl"], packages: ["openssl"] },
  { commands: ["busybox"], packages: ["busybox-static"] },
  { commands: ["debootstrap"], packages: ["debootstrap"] },
];

/** Whether a program of this name, or at this path, can be started. */
export function hasCommand(name) {
  if (!name) return false;
  const places = name.includes("/") ? [name] : (process.env.PATH ?? "").split(delimiter).map((dir) => join(dir, name));
  return places.some((place) => {
    try {
      accessSync(place, constants.X_OK);
      return statSync(place).isFile();
    } catch {
      return false;
    }
  });
}

/** Missing Debian packages; none on systems where the local backend can't confine anyway. */
export function missingPackages(exists = hasCommand, platform = process.platform) {
  return platform === "linux" ? lacking(parts, exists) : [];
}

/** Missing Debian packages without which some tests are skipped. */
export function missingExtras(exists = hasCommand, platform = process.platform, arch = process.arch) {
  if (platform !== "linux") return [];
  return [
    ...(arch === "x64" ? lacking(extras, exists) : []),
    ...lacking(containers, exists),
    ...lacking(browsers, exists),
    ...lacking(shells, exists),
  ];
}

function lacking(list, exists) {
  const isThere = ({ commands, folder }) => commands.some(exists) || (folder !== undefined && existsSync(folder));
  return list.filter((part) => !isThere(part)).flatMap((part) => part.packages);
}

/** The command that installs packages. */
export function installLine(packages) {
  return `sudo apt-get update && sudo apt-get install -y ${packages.join(" ")}`;
}

/** How to install packages that this process can't install; undefined if it can. */
export function adviceFor(packages, exists = hasCommand, uid = process.getuid?.()) {
  const missing = `missing: ${packages.join(", ")}.`;
  if (!exists("apt-get")) return `${missing} Install them with this system's package manager.`;
  return uid === 0 ? undefined : `${missing} Run:\n${installLine(packages)}`;
}

/** Installs missing packages if allowed, else fails with the command to run. */
export async function ensureSystemParts() {
  const packages = missingPackages();
  if (packages.length === 0) return process.platform === "linux" ? "all installed" : "nothing needed on this system";
  const advice = adviceFor(packages);
  if (advice) throw new StepFailed(advice);
  await install(packages);
  const still = missingPackages();
  if (still.length > 0) throw new StepFailed(`still missing after apt-get install: ${still.join(", ")}`);
  return `installed ${packages.join(" ")}`;
}

/** Installs packages for some tests if allowed, else reports which tests are skipped. */
export async function ensureExtras() {
  return await ensure(missingExtras());
}

/** The same for the clients of `npm run test:egress`. */
export async function ensureClients() {
  return await ensure(process.platform === "linux" ? lacking(clients, hasCommand) : []);
}

/** The same for a cluster. */
export async function ensureClusterParts() {
  return await ensure(process.platform === "linux" ? lacking(clusters, hasCommand) : []);
}

async function ensure(packages) {
  if (packages.length === 0) return "all installed";
  const advice = adviceFor(packages);
  if (advice) return `not run: the tests that need them. ${advice}`;
  await install(packages);
  return `installed ${packages.join(" ")}`;
}

/** Installs what an emulated machine needs; returns why there can be none, or undefined. */
export async function ensureMachineParts() {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "only root on Linux can make the machine's disk";
  const packages = lacking(machines, hasCommand);
  if (packages.length === 0) return undefined;
  const advice = adviceFor(packages);
  if (advice === undefined) await install(packages);
  return advice;
}

async function install(packages) {
  const options = { quiet: true, env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  const wait = ["-o", "DPkg::Lock::Timeout=120"];
  const update = await run("apt-get", ["-qq", ...wait, "update"], options);
  const command = ["-qq", ...wait, "install", "-y", "--no-install-recommends", ...packages];
  const result = await run("apt-get", command, options);
  // A failed apt-get update only matters if the old package list was not enough.
  expectSuccess({ ...result, output: `${update.output}${result.output}` }, `apt-get install ${packages.join(" ")}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await step("system parts", ensureSystemParts).catch(() => process.exit(1));
}
