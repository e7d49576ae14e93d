import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, sep } from "node:path";
import type { JailBind } from "./jail.js";

/** What makes the programs that the user's PATH names work inside. */
export interface Toolchains {
  path: string;
  env: Record<string, string>;
  binds: JailBind[];
}

const STANDARD = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/** Whole directories below home that hold programs and nothing else, with the variable that names them. */
const TOOL_HOMES: Readonly<Record<string, string>> = {
  ".pyenv": "PYENV_ROOT",
  ".rbenv": "RBENV_ROOT",
  ".nodenv": "NODENV_ROOT",
  ".volta": "VOLTA_HOME",
  ".bun": "BUN_INSTALL",
  ".asdf": "ASDF_DIR",
  ".rustup": "RUSTUP_HOME",
};

/** Finds the toolchains outside `/usr`. Of a home directory only what is known to hold no credentials is taken. */
export function findToolchains(env: NodeJS.ProcessEnv, execPath: string = process.execPath): Toolchains {
  const home = homedir();
  const found: Toolchains = { path: "", env: {}, binds: [] };
  const directories: string[] = [];
  const entries = [...(env["PATH"] ?? "").split(":"), dirname(execPath)];
  for (const directory of entries) {
    if (!directory.startsWith("/") || directories.includes(directory) || !existsSync(directory)) continue;
    if (!isStandard(directory)) {
      const root = rootOf(directory, home);
      if (root === undefined) continue;
      add(found, root);
      const variable = TOOL_HOMES[basename(root)];
      if (variable !== undefined) found.env[variable] = root;
      if (directory === join(home, ".cargo", "bin")) addRust(found, home);
    }
    directories.push(directory);
  }
  found.path = [...directories, ...STANDARD.filter((directory) => !directories.includes(directory))].join(":");
  return found;
}

function isStandard(directory: string): boolean {
  return STANDARD.includes(directory) || directory.startsWith("/usr/");
}

/** The directory to show for one of PATH; undefined when it cannot be shown safely. */
function rootOf(directory: string, home: string): string | undefined {
  const below = directory.startsWith(home + sep) ? directory.slice(home.length + 1).split(sep) : undefined;
  if (basename(directory) === ".bin") return undefined; // programs of some project, whose files are not there
  if (directory === "/" || directory === home || directory.startsWith("/proc/")) return undefined;
  if (below === undefined) {
    const parent = dirname(directory);
    // A prefix such as /opt/tool is shown whole; /opt/bin or /srv/app/node_modules/.bin is not.
    return basename(directory) === "bin" && parent.split(sep).length > 2 && existsSync(join(parent, "lib"))
      ? parent
      : directory;
  }
  const [first = "", ...rest] = below;
  if (TOOL_HOMES[first] !== undefined) return join(home, first);
  if (rest.at(-1) === "bin" && [".nvm", ".sdkman", ".fnm", ".local"].includes(first) && rest.length > 1)
    return dirname(directory);
  return directory;
}

/** The programs in `.cargo/bin` are fronts for what is in `.rustup`; the rest of `.cargo` holds credentials. */
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
