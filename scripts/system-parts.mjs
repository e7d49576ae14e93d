import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { run } from "./processes.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";

/** What Glovebox needs from the system: any one of `commands` will do. musl makes the agent smaller but is not needed. */
const parts = [
  { commands: ["bwrap"], packages: ["bubblewrap"] },
  { commands: ["git"], packages: ["git"] },
  { commands: [process.env.CC, "musl-gcc", "gcc", "cc"], packages: ["gcc", "libc6-dev", "musl-tools"] },
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
  if (platform !== "linux") return [];
  return parts.filter((part) => !part.commands.some(exists)).flatMap((part) => part.packages);
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
  const options = { quiet: true, env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  const wait = ["-o", "DPkg::Lock::Timeout=120"];
  const update = await run("apt-get", ["-qq", ...wait, "update"], options);
  const install = ["-qq", ...wait, "install", "-y", "--no-install-recommends", ...packages];
  const result = await run("apt-get", install, options);
  // A package list that could not be refreshed matters only when the old one was not enough.
  expectSuccess({ ...result, output: `${update.output}${result.output}` }, `apt-get install ${packages.join(" ")}`);
  const still = missingPackages();
  if (still.length > 0) throw new StepFailed(`still missing after apt-get install: ${still.join(", ")}`);
  return `installed ${packages.join(" ")}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await step("system parts", ensureSystemParts).catch(() => process.exit(1));
}
