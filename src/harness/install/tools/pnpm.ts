import { join } from "node:path";
import { type InstallTool, matchesOf, SCHEME } from "../tool.js";
import { npmSettings, npmSetup, registriesIn } from "./npm-settings.js";

export const pnpm: InstallTool = {
  name: "pnpm",
  programs: ["pnpm", "pnpx"],
  ecosystem: "node",
  lockfiles: ["pnpm-lock.yaml"],
  projectFiles: [".npmrc"],
  fills: "node_modules",
  accepts: (lock) => /^packages:[ \t]*$/m.test(lock),
  run: () => ["pnpm", "install", "--frozen-lockfile"],
  env: { CI: "1", npm_config_fetch_retries: "1", npm_config_fetch_retry_mintimeout: "1000" },
  asks: [{ program: "pnpm", args: ["config", "get", "registry"] }],
  async setup(config, project, ask) {
    const folder = config.env["XDG_CONFIG_HOME"] || join(config.home, ".config");
    const settings = npmSettings(config, [join(folder, "pnpm", "rc")]);
    const { env, args, ...rest } = await npmSetup(settings, project, ask);
    const registry = env["npm_config_registry"];
    // Later versions read only variables of their own name.
    return {
      ...rest,
      env: { ...env, ...(registry !== undefined && { pnpm_config_registry: registry }) },
      args: args.map((arg) => arg.replace(/^--/, "--config.")),
    };
  },
  named: (lock, project) => [
    ...matchesOf(lock, new RegExp(`(?:tarball|repo):[ \\t]*['"]?(${SCHEME}[^\\s,'"}]+)`, "gi")),
    ...registriesIn(project[".npmrc"]),
  ],
};
