import { type InstallTool, type Question, SCHEME } from "../tool.js";
import { npmSettings, npmSetup, registriesIn } from "./npm-settings.js";

/** A failure should be known soon, and nothing but packages is fetched. */
const QUIET = {
  npm_config_audit: "false",
  npm_config_fund: "false",
  npm_config_update_notifier: "false",
  npm_config_progress: "false",
  npm_config_fetch_retries: "1",
  npm_config_fetch_retry_mintimeout: "1000",
  npm_config_fetch_retry_maxtimeout: "5000",
};

const ADDRESS = new RegExp(`^${SCHEME}`, "i");

const ASK: Question = { program: "npm", args: ["config", "get", "registry"] };
/** Files that can't exist: npm refuses to read one file twice. */
const NO_FILES = { npm_config_userconfig: "/dev/null/user", npm_config_globalconfig: "/dev/null/global" };

export const npm: InstallTool = {
  name: "npm",
  programs: ["npm", "npx"],
  ecosystem: "node",
  lockfiles: ["npm-shrinkwrap.json", "package-lock.json"],
  projectFiles: [".npmrc"],
  fills: "node_modules",
  accepts: (lock) => addressesIn(lock).packages > 0,
  run: () => ["npm", "ci"],
  env: QUIET,
  asks: [ASK],
  setup: (config, project, ask) => npmSetup(npmSettings(config), project, ask),
  named: (lock, project) => [...addressesIn(lock).addresses, ...registriesIn(project[".npmrc"])],
  replaces: { ...ASK, env: NO_FILES, isUnconfigured: true },
};

interface LockEntry {
  readonly resolved?: unknown;
  readonly version?: unknown;
  readonly dependencies?: unknown;
}

/** What a lockfile of npm installs and where from. Other fields name addresses, too, such as sponsors. */
function addressesIn(lock: string): { packages: number; addresses: string[] } {
  const found = { packages: 0, addresses: [] as string[] };
  const visit = (entries: unknown): void => {
    for (const [name, entry] of Object.entries(asObject(entries))) {
      const { resolved, version, dependencies } = asObject(entry) as LockEntry;
      if (name !== "") found.packages++;
      for (const value of [resolved, version]) {
        if (typeof value === "string" && ADDRESS.test(value)) found.addresses.push(value);
      }
      // In lockfiles of version 1 these are whole entries again; later they are ranges.
      if (name !== "") visit(dependencies);
    }
  };
  try {
    const { packages, dependencies } = JSON.parse(lock) as { packages?: unknown; dependencies?: unknown };
    visit(packages);
    visit(dependencies);
  } catch {
    // Npm itself says what is wrong with it.
    return { packages: 1, addresses: [] };
  }
  return found;
}

function asObject(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}
