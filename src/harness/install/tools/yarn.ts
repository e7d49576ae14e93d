import { join } from "node:path";
import { type InstallTool, matchesOf, plainAddress, type Question, SCHEME } from "../tool.js";
import { npmSettings, npmSetup, registriesIn } from "./npm-settings.js";

const isBerry = (lock: string): boolean => /^__metadata:/m.test(lock);
const common = {
  programs: ["yarn", "yarnpkg"],
  ecosystem: "node",
  lockfiles: ["yarn.lock"],
  fills: "node_modules",
} as const;

const ASK_CLASSIC: Question = { program: "yarn", args: ["config", "get", "registry"] };

/** Yarn 1. It fetches from where the lockfile says, whatever is configured. */
export const yarnClassic: InstallTool = {
  ...common,
  name: "yarn",
  projectFiles: [".npmrc", ".yarnrc"],
  accepts: (lock) => !isBerry(lock) && /^[ \t]+version /m.test(lock),
  run: () => ["yarn", "install", "--frozen-lockfile", "--non-interactive"],
  asks: [ASK_CLASSIC],
  async setup(config, project, ask) {
    const settings = npmSettings(config);
    const own = /^registry\s+"?([^"\s]+)"?/m.exec(config.read(join(config.home, ".yarnrc")) ?? "")?.[1];
    if (own !== undefined) settings.set("registry", own);
    const { args: _, ...setup } = await npmSetup(settings, project, ask);
    const isOfProject = /^registry\s/m.test(project[".yarnrc"] ?? "");
    return { ...setup, args: [], ...(isOfProject && { env: {} }) };
  },
  named: (lock, project) => [
    ...matchesOf(lock, /^[ \t]+resolved "([^"\n]+)"/gm),
    ...registriesIn(project[".npmrc"]),
    ...matchesOf(project[".yarnrc"] ?? "", /registry"?[ \t]+"?(https?:\/\/[^"\s]+)/g),
  ],
};

/** Yarn 2 and later. */
export const yarnBerry: InstallTool = {
  ...common,
  name: "yarn",
  projectFiles: [".yarnrc.yml"],
  accepts: (lock) => isBerry(lock) && /^[ \t]+resolution: .*@npm:/m.test(lock),
  run: () => ["yarn", "install", "--immutable"],
  env: { YARN_ENABLE_TELEMETRY: "0", YARN_HTTP_RETRY: "1" },
  // A yarn 1 on the machine starts the later one that a project names, and does not know its settings.
  asks: [{ program: "yarn", args: ["config", "get", "npmRegistryServer"] }, ASK_CLASSIC],
  async setup(config, project, ask) {
    const SERVER = /npmRegistryServer:\s*["']?([^"'\s]+)/g;
    const file = config.read(join(config.home, ".yarnrc.yml")) ?? "";
    const main = config.env["YARN_NPM_REGISTRY_SERVER"] ?? /^npmRegistryServer:\s*["']?([^"'\s]+)/m.exec(file)?.[1];
    const found = plainAddress(main ?? "") ?? plainAddress((await ask())[0] ?? "");
    const scoped = matchesOf(file, SERVER).flatMap((text) => plainAddress(text) ?? []);
    const isOfProject = /^npmRegistryServer:/m.test(project[".yarnrc.yml"] ?? "");
    const plain = found?.url.startsWith("http:") === true ? new URL(found.url).hostname : undefined;
    return {
      registries: [...new Set([...(found === undefined ? [] : [found]), ...scoped].map(({ url }) => url))],
      isIncomplete: found === undefined,
      env: {
        ...(found !== undefined && !isOfProject && { YARN_NPM_REGISTRY_SERVER: found.url }),
        ...(plain !== undefined && { YARN_UNSAFE_HTTP_WHITELIST: plain }),
      },
      args: [],
      hasSecret: /^\s*(npmAuthToken|npmAuthIdent):/m.test(file) || found?.hasSecret === true,
    };
  },
  named: (lock, project) => [
    ...matchesOf(lock, new RegExp(`^[ \\t]+resolution: "[^"\\n]*@(${SCHEME}[^"#\\n]+)`, "gm")),
    ...matchesOf(lock, /__archiveUrl=([^"&\s]+)/g).map((text) => decoded(text)),
    ...matchesOf(project[".yarnrc.yml"] ?? "", /npmRegistryServer:\s*["']?([^"'\s]+)/g),
  ],
};

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
