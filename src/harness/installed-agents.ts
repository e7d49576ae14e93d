import { delimiter } from "node:path";
import { findProgram, trustedDirectories } from "../machine/trusted-programs.js";
import { repositoryOf } from "../util/repository-of.js";
import { builtInAgents, findVersion, versionFault } from "./agents.js";
import { outputOf } from "./output-of.js";
import type { AgentDriver } from "./types.js";

/** A built-in agent on this machine. */
export interface InstalledAgent {
  readonly name: string;
  /** Where its program is; absent if it is not in PATH. */
  readonly path?: string;
  /** Absent if there is no program, or if it does not say. */
  readonly version?: string;
  /** The versions that were tried, the oldest first. */
  readonly tried: readonly string[];
  /** What is wrong: it is older than it may be, or than all that were tried, or prints no version. */
  readonly problem?: string;
  /** How to install it. */
  readonly install: string;
}

const DEADLINE = 20_000;
/** What a program needs to start, wherever it was installed; no keys. */
const PASSED_ON = [
  "HOME",
  "LANG",
  "NVM_DIR",
  "VOLTA_HOME",
  "ASDF_DIR",
  "ASDF_DATA_DIR",
  "MISE_DATA_DIR",
  "XDG_CONFIG_HOME",
];

/** Looks for the built-in agents in PATH, and asks each that is there for its version. Programs of the repository around are not run. */
export async function findInstalledAgents(signal?: AbortSignal): Promise<InstalledAgent[]> {
  const repository = repositoryOf(`${process.cwd()}/x`);
  // Who looks from the home directory has the programs below it all the same.
  const directories = trustedDirectories(process.env["PATH"] ?? "", repository, repository ?? "/dev/null");
  return await Promise.all(
    builtInAgents().map((driver) => {
      const path = findProgram(driver.versionArgv?.[0] ?? driver.name, directories, repository);
      return examine(driver, path, directories, signal);
    }),
  );
}

async function examine(
  driver: AgentDriver,
  path: string | undefined,
  directories: readonly string[],
  signal: AbortSignal | undefined,
): Promise<InstalledAgent> {
  const { name, tried = [], installHint: install } = driver;
  if (path === undefined) return { name, tried, install };
  const kept = PASSED_ON.flatMap((variable) => [[variable, process.env[variable]] as const]);
  const own = kept.flatMap(([variable, value]) => (value === undefined ? [] : [[variable, value] as const]));
  const env = { ...Object.fromEntries(own), PATH: directories.join(delimiter), NO_COLOR: "1" };
  const [, ...args] = driver.versionArgv ?? [];
  const version = findVersion((await outputOf([path, ...args], { env, signal, deadline: DEADLINE })) ?? "");
  if (version === undefined) return { name, path, tried, install, problem: "it does not print its version" };
  const fault = versionFault(driver, version);
  return { name, path, version, tried, install, ...(fault !== undefined && { problem: fault.message }) };
}
