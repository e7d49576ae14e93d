import { dirname, join } from "node:path";
import { isBelowNpm } from "../ask-tool.js";
import { type AskDefault, type ProjectFiles, plainAddress, type ToolSettings, type ToolSetup } from "../tool.js";

/** The settings of a configuration file of npm. */
export function parseNpmrc(text: string, env: ToolSettings["env"] = {}): Map<string, string> {
  const settings = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const [, key, value] = /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (key === undefined || value === undefined) continue;
    const filled = value.replace(/\$\{([^}?]+)\??\}/g, (_, name: string) => env[name] ?? "");
    settings.set(key, filled.replace(/^(["'])(.*)\1$/, "$2"));
  }
  return settings;
}

/**
 * All settings of npm that are outside the repository, the strongest last. Npm hands its own settings to what it starts, in lower case, and has read
 * those of the project by then: below npm only variables in capitals are the user's.
 */
export function npmSettings(config: ToolSettings, more: readonly string[] = []): Map<string, string> {
  const { env, home } = config;
  const variable = (name: string): string | undefined =>
    env[`NPM_CONFIG_${name.toUpperCase()}`] ?? (isBelowNpm(env) ? undefined : env[`npm_config_${name}`]);
  const prefix = variable("prefix") ?? join(dirname(process.execPath), "..");
  const files = [
    variable("globalconfig") ?? join(prefix, "etc", "npmrc"),
    variable("userconfig") ?? join(home, ".npmrc"),
    ...more,
  ];
  const settings = new Map(files.flatMap((path) => [...parseNpmrc(config.read(path) ?? "", env)]));
  const registry = variable("registry");
  if (registry !== undefined && registry !== "") settings.set("registry", registry);
  return settings;
}

/** The registries of npm's settings, or the one that the tool names itself. What the project sets itself is left to it. */
export async function npmSetup(
  settings: ReadonlyMap<string, string>,
  project: ProjectFiles,
  ask: AskDefault,
): Promise<ToolSetup> {
  const own = parseNpmrc(project[".npmrc"] ?? "");
  const main = plainAddress(settings.get("registry") ?? "") ?? plainAddress((await ask())[0] ?? "");
  const scoped = [...settings].flatMap(([key, value]) => {
    const found = /^@[\w.~-]+:registry$/.test(key) ? plainAddress(value) : undefined;
    return found === undefined ? [] : [{ key, ...found }];
  });
  const hasKey = [...settings.keys()].some((key) => /(^|:)_(authToken|auth|password)$/.test(key));
  return {
    registries: [...(main === undefined ? [] : [main.url]), ...scoped.map(({ url }) => url)],
    isIncomplete: main === undefined,
    env: main === undefined || own.has("registry") ? {} : { npm_config_registry: main.url },
    args: scoped.filter(({ key }) => !own.has(key)).map(({ key, url }) => `--${key}=${url}`),
    hasSecret: hasKey || main?.hasSecret === true || scoped.some(({ hasSecret }) => hasSecret),
  };
}

/** The registries that a project's own configuration names. */
export function registriesIn(npmrc: string | undefined): string[] {
  return [...parseNpmrc(npmrc ?? "")].flatMap(([key, value]) => (/(^|:)registry$/.test(key) ? [value] : []));
}
