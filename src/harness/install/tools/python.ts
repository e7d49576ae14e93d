import { join } from "node:path";
import { tomlStrings } from "../toml-lines.js";
import { type InstallTool, matchesOf, plainAddress, SCHEME, type ToolSettings, type ToolSetup } from "../tool.js";

/** Isolated, so that it imports nothing from the current directory or the user's variables. Files of the usual index are on a host of their own. */
const PIP_INDEX = `from pip._internal.models.index import PyPI as usual
print(usual.simple_url)
print("https://" + usual.file_storage_domain)`;

/** Pip, into the home directory of the sandbox: the system's own packages are read-only, and the work tree stays clean. */
export const pip: InstallTool = {
  name: "pip",
  programs: ["pip", "pip3", "python", "python3"],
  ecosystem: "python",
  lockfiles: ["requirements.txt"],
  projectFiles: [],
  accepts: (lock) => /^[ \t]*[A-Za-z0-9]/m.test(lock),
  // In one word: pyenv takes "-m pip" for a reason to write to its own folder, and fails when it can't.
  run: (lockfile) => ["python3", "-mpip", "install", "--requirement", lockfile],
  env: {
    PIP_USER: "1",
    PIP_BREAK_SYSTEM_PACKAGES: "1",
    PIP_NO_INPUT: "1",
    PIP_DISABLE_PIP_VERSION_CHECK: "1",
    PIP_RETRIES: "1",
  },
  asks: [{ program: "python3", args: ["-I", "-c", PIP_INDEX] }],
  async setup(config, _, ask) {
    const files = pipFiles(config).map((path) => config.read(path) ?? "");
    const setting = (name: string): string[] => {
      const given = config.env[`PIP_${name.toUpperCase().replaceAll("-", "_")}`];
      const pattern = new RegExp(`^${name}\\s*[=:]\\s*((?:.*)(?:\\n[ \\t]+.*)*)`, "m");
      return (given ?? files.flatMap((text) => pattern.exec(text)?.[1] ?? []).at(-1) ?? "")
        .split(/\s+/)
        .filter(Boolean);
    };
    const indexes = { main: setting("index-url")[0], extra: setting("extra-index-url"), usual: await ask() };
    return pythonSetup(indexes, (main, extra) => ({
      PIP_INDEX_URL: main,
      PIP_EXTRA_INDEX_URL: extra.join(" "),
      PIP_TRUSTED_HOST: [main, ...extra].flatMap((url) => (url.startsWith("http:") ? new URL(url).host : [])).join(" "),
    }));
  },
  named: (lock) => matchesOf(lock.replace(/(^|\s)#.*$/gm, ""), new RegExp(`\\b(${SCHEME}[^\\s;'"]+)`, "gi")),
};

/** Uv, into `.venv`, which it hides from git by itself. */
export const uv: InstallTool = {
  name: "uv",
  programs: ["uv", "uvx"],
  ecosystem: "python",
  lockfiles: ["uv.lock"],
  projectFiles: [],
  fills: ".venv",
  accepts: (lock) => /source = \{ (?!virtual|editable)/.test(lock),
  run: () => ["uv", "sync", "--frozen"],
  env: { UV_NO_PROGRESS: "1", UV_PYTHON_DOWNLOADS: "never", UV_HTTP_RETRIES: "1" },
  async setup(config) {
    const { env, home } = config;
    const folder = env["XDG_CONFIG_HOME"] || join(home, ".config");
    const files = env["UV_CONFIG_FILE"] ? [env["UV_CONFIG_FILE"]] : ["/etc/uv/uv.toml", join(folder, "uv", "uv.toml")];
    const settings = files.flatMap((path) => tomlStrings(config.read(path) ?? ""));
    const valuesOf = (...names: string[]): string[] =>
      settings.filter(({ name }) => names.includes(name)).map(({ value }) => value);
    const main = env["UV_DEFAULT_INDEX"] ?? env["UV_INDEX_URL"] ?? valuesOf("index-url", "pip.index-url").at(-1);
    const more = (env["UV_INDEX"] ?? env["UV_EXTRA_INDEX_URL"])
      ?.split(/\s+/)
      .map((text) => text.replace(/^[\w-]+=/, ""));
    const extra = more ?? valuesOf("index.url", "extra-index-url", "pip.extra-index-url");
    const setup = pythonSetup({ main, extra, usual: [] }, (url, others) => ({
      UV_DEFAULT_INDEX: url,
      UV_INDEX: others.join(" "),
    }));
    // The lockfile names every place, so that what is missing is refused by name.
    return { ...setup, isIncomplete: setup.registries.length === 0 };
  },
  named: (lock) => matchesOf(lock, new RegExp(`(?:url|registry|git) = "(${SCHEME}[^"\\n]+)"`, "g")),
};

function pipFiles({ env, home }: ToolSettings): string[] {
  if (env["PIP_CONFIG_FILE"]) return [env["PIP_CONFIG_FILE"]];
  const folder = env["XDG_CONFIG_HOME"] || join(home, ".config");
  return ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", join(home, ".pip", "pip.conf"), join(folder, "pip", "pip.conf")];
}

interface Indexes {
  readonly main: string | undefined;
  readonly extra: readonly string[];
  /** The index that the tool uses unless configured, and the place of its files. */
  readonly usual: readonly string[];
}

/** The main index or the usual one, and those beside it. Where the usual one is used, the place of its files is reached, too. */
function pythonSetup(
  { main, extra, usual }: Indexes,
  toEnv: (main: string, extra: readonly string[]) => Readonly<Record<string, string>>,
): ToolSetup {
  const [index, ...files] = usual.flatMap((text) => plainAddress(text)?.url ?? []);
  const first = plainAddress(main ?? index ?? "");
  const more = extra.flatMap((text) => plainAddress(text) ?? []);
  const all = [...(first === undefined ? [] : [first]), ...more];
  const registries = all.map(({ url }) => url);
  const usesUsual = registries.some((url) => index !== undefined && new URL(url).host === new URL(index).host);
  const others = more.map(({ url }) => url);
  return {
    registries: usesUsual ? [...registries, ...files] : registries,
    isIncomplete: first === undefined,
    env: Object.fromEntries(Object.entries(toEnv(first?.url ?? "", others)).filter(([, value]) => value !== "")),
    args: [],
    hasSecret: all.some(({ hasSecret }) => hasSecret),
  };
}
