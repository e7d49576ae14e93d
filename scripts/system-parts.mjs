import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { run } from "./processes.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";

/** What Glovebox needs from the system: any one of `commands` will do. musl makes the guest smaller but is not needed. */
const parts = [
  { commands: ["bwrap"], packages: ["bubblewrap"] },
  { commands: ["git"], packages: ["git"] },
  { commands: [process.env.CC, "musl-gcc", "gcc", "cc"], packages: ["gcc", "libc6-dev", "musl-tools"] },
];

/** What only tests and a release need: the guest for the other kind of machine, and something that runs it. */
const extras = [
  { commands: ["aarch64-linux-gnu-gcc"], packages: ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"] },
  { commands: ["qemu-aarch64-static"], packages: ["qemu-user-static"] },
];

/** What the tests of containers need: an engine of their own, and what images are made of. */
const containers = [
  { commands: ["dockerd"], packages: ["docker.io"] },
  { commands: ["ip"], packages: ["iproute2"] },
  { commands: ["docker-registry"], packages: ["docker-registry"] },
  { commands: ["busybox"], packages: ["busybox-static"] },
  { commands: ["debootstrap"], packages: ["debootstrap"] },
];

/** What the test of the report needs: a browser to look at it with. */
const browsers = [{ commands: ["chromium", "chromium-browser"], packages: ["chromium"] }];

/** What the tests of completions need: the shells that are completed in. */
const shells = [
  { commands: ["zsh"], packages: ["zsh"] },
  { commands: ["fish"], packages: ["fish"] },
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

/** Debian packages that have to be installed; none on a system where the local backend is not confined anyway. */
export function missingPackages(exists = hasCommand, platform = process.platform) {
  return platform === "linux" ? lacking(parts, exists) : [];
}

/** Debian packages that some tests would be skipped without. */
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
  return list.filter((part) => !part.commands.some(exists)).flatMap((part) => part.packages);
}

/** The line that a person has to type. */
export function installLine(packages) {
  return `sudo apt-get update && sudo apt-get install -y ${packages.join(" ")}`;
}

/** What to tell a person about packages that this process cannot install; undefined when it can. */
export function adviceFor(packages, exists = hasCommand, uid = process.getuid?.()) {
  const missing = `missing: ${packages.join(", ")}.`;
  if (!exists("apt-get")) return `${missing} Install them with this system's package manager.`;
  return uid === 0 ? undefined : `${missing} Type:\n${installLine(packages)}`;
}

/** Installs what is missing when it may, else fails with the line to type. */
export async function ensureSystemParts() {
  const packages = missingPackages();
  if (packages.length === 0) return process.platform === "linux" ? "all there" : "nothing needed on this system";
  const advice = adviceFor(packages);
  if (advice) throw new StepFailed(advice);
  await install(packages);
  const still = missingPackages();
  if (still.length > 0) throw new StepFailed(`still missing after apt-get install: ${still.join(", ")}`);
  return `installed ${packages.join(" ")}`;
}

/** Installs what some tests need when it may, else says what is not run. */
export async function ensureExtras() {
  const packages = missingExtras();
  if (packages.length === 0) return "all there";
  const advice = adviceFor(packages);
  if (advice) return `not run: the tests that need them. ${advice}`;
  await install(packages);
  return `installed ${packages.join(" ")}`;
}

async function install(packages) {
  const options = { quiet: true, env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  const wait = ["-o", "DPkg::Lock::Timeout=120"];
  const update = await run("apt-get", ["-qq", ...wait, "update"], options);
  const command = ["-qq", ...wait, "install", "-y", "--no-install-recommends", ...packages];
  const result = await run("apt-get", command, options);
  // A package list that could not be refreshed matters only when the old one was not enough.
  expectSuccess({ ...result, output: `${update.output}${result.output}` }, `apt-get install ${packages.join(" ")}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await step("system parts", ensureSystemParts).catch(() => process.exit(1));
}
