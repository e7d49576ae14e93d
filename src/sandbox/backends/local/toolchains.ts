import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { userHome } from "../../../machine/user-home.js";
import type { JailBind } from "../../jail.js";
import { findLinkedPrograms } from "./toolchains/program-links.js";

/** What makes the programs in the user's PATH work in the sandbox. */
export interface Toolchains {
  path: string;
  env: Record<string, string>;
  binds: JailBind[];
}

const STANDARD = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** Directories below the home that contain only programs, with the variable that names them. */
const TOOL_HOMES: Readonly<Record<string, string>> = {
  ".pyenv": "PYENV_ROOT",
  ".rbenv": "RBENV_ROOT",
  ".nodenv": "NODENV_ROOT",
  ".volta": "VOLTA_HOME",
  ".bun": "BUN_INSTALL",
  ".asdf": "ASDF_DIR",
  ".rustup": "RUSTUP_HOME",
};
/** Marks of a home directory, by whatever path it was reached. */
const HOME_SIGNS = [".ssh", ".config", ".aws", ".profile", ".bashrc", ".zshrc", ".netrc", ".npmrc"];
/** Further names that the directory of an installed program does not contain. */
const PROJECT_SIGNS = [...HOME_SIGNS, ".cache", ".git", ".env"];

/** Finds the toolchains outside `/usr`. From a home directory, only what is known to contain no credentials is shown. */
export function findToolchains(env: NodeJS.ProcessEnv, execPath: string = process.execPath): Toolchains {
  const homes = homesOf(userHome());
  const found: Toolchains = { path: "", env: {}, binds: [] };
  const directories: string[] = [];
  const entries = [...(env["PATH"] ?? "").split(":"), dirname(execPath)];
  for (const entry of entries) {
    if (!entry.startsWith("/") || !existsSync(entry)) continue;
    const directory = plainPath(entry);
    if (directories.includes(directory)) continue;
    if (!isStandard(directory)) {
      const root = rootOf(directory, homes);
      if (root === undefined) continue;
      add(found, root);
      const variable = TOOL_HOMES[basename(root)];
      if (variable !== undefined) found.env[variable] = root;
      const owner = homes.find((home) => directory === join(home, ".cargo", "bin"));
      if (owner !== undefined) addRust(found, owner);
      for (const home of homes) for (const path of findLinkedPrograms(directory, home, isInstalled)) add(found, path);
    }
    directories.push(directory);
  }
  found.path = [...directories, ...STANDARD.filter((directory) => !directories.includes(directory))].join(":");
  return found;
}

/** A path that can be shown under its own name: without `..`, and without slashes that mean nothing. */
function plainPath(path: string): string {
  return path.split(sep).includes("..") ? realpathSync(path) : resolve(path);
}

function isStandard(directory: string): boolean {
  return STANDARD.includes(directory) || directory.startsWith("/usr/");
}

/** The home directory by its name and by its real path: PATH may contain either. */
function homesOf(home: string): string[] {
  return existsSync(home) ? [...new Set([home, realpathSync(home)])] : [home];
}

function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

/** The directory to show for one entry of PATH; undefined if it can't be shown safely. */
function rootOf(directory: string, homes: readonly string[]): string | undefined {
  const real = realpathSync(directory);
  if (basename(directory) === ".bin") return undefined; // programs of some project, whose files are not there
  if (!statSync(real).isDirectory() || real.split(sep).length < 3 || isWithin(real, "/proc")) return undefined;
  if (homes.some((home) => isWithin(home, real)) || hasAny(real, HOME_SIGNS)) return undefined;
  const home = homes.find((path) => isWithin(directory, path));
  if (home === undefined) return isPrefix(dirname(directory), directory) ? dirname(directory) : directory;
  const [first = "", ...rest] = directory.slice(home.length + 1).split(sep);
  if (TOOL_HOMES[first] !== undefined) return join(home, first);
  if (rest.at(-1) === "bin" && [".nvm", ".sdkman", ".fnm", ".local"].includes(first) && rest.length > 1)
    return dirname(directory);
  return directory;
}

/** Whether a directory, such as /opt/tool, is the prefix of an installed program; then all of it is shown. */
function isPrefix(parent: string, directory: string): boolean {
  if (basename(directory) !== "bin" || parent.split(sep).length < 3 || !existsSync(join(parent, "lib"))) return false;
  return !basename(parent).startsWith(".") && isInstalled(parent);
}

/** Whether a directory looks like that of an installed program: nobody lives or works in it. */
function isInstalled(directory: string): boolean {
  return !hasAny(directory, PROJECT_SIGNS);
}

function hasAny(directory: string, names: readonly string[]): boolean {
  return names.some((name) => existsSync(join(directory, name)));
}

/** The programs in `.cargo/bin` start those in `.rustup`; the rest of `.cargo` contains credentials. */
function addRust(found: Toolchains, home: string): void {
  const rustup = join(home, ".rustup");
  if (!existsSync(rustup)) return;
  add(found, rustup);
  found.env["RUSTUP_HOME"] = rustup;
}

function add(found: Toolchains, path: string): void {
  const covers = (bind: JailBind): boolean => path === bind.target || path.startsWith(bind.target + sep);
  if (!found.binds.some(covers)) found.binds.push({ source: realpathSync(path), target: path });
}
