import { isAbsolute, join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import type { Limits } from "../../../contracts/types.js";
import { findSandboxId, findSnapshotRecord } from "../../ledger.js";
import { userHome } from "../../machine/user-home.js";
import { nearestName } from "../../util/nearest.js";
import { backendOfEnvironment, chooseBackend, loadBackend } from "../registry.js";
import type { BackendDefaults, UserConfig } from "./config-schema.js";
import { toBytes, toMilliseconds } from "./quantity.js";
import { findSettingsFile } from "./settings-file.js";

/** The user's configuration file, and what it says. */
export interface LoadedConfig {
  readonly path: string;
  readonly config: UserConfig;
}

type Environment = Readonly<Record<string, string | undefined>>;
type Options = SandboxOptions & { backend?: string };

/** Where the user's configuration file is, or would be. Never in a repository, unless the user names such a place. */
export function userConfigPath(env: Environment = process.env): string {
  const { GLOVEBOX_CONFIG, XDG_CONFIG_HOME } = env;
  if (GLOVEBOX_CONFIG) {
    if (isAbsolute(GLOVEBOX_CONFIG)) return GLOVEBOX_CONFIG;
    throw new SandboxError(
      "invalid_argument",
      `Invalid GLOVEBOX_CONFIG "${GLOVEBOX_CONFIG}" — must be an absolute path`,
    );
  }
  // The XDG base directory specification says to ignore a relative value.
  const base = XDG_CONFIG_HOME && isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : join(userHome(), ".config");
  return join(base, "glovebox", "config.yaml");
}

/** Reads the user's configuration file. Undefined: there is none. One that GLOVEBOX_CONFIG names must exist. */
export async function loadUserConfig(env: Environment = process.env): Promise<LoadedConfig | undefined> {
  const path = userConfigPath(env);
  const found = findSettingsFile(path);
  if (found === undefined) {
    if (!env["GLOVEBOX_CONFIG"]) return undefined;
    throw new SandboxError("not_found", `GLOVEBOX_CONFIG names ${path}, which does not exist`, {
      hint: "create the file, or unset GLOVEBOX_CONFIG",
    });
  }
  const [{ loadSettings }, { CONFIG_SCHEMA }] = await Promise.all([
    import("./parse-settings.js"),
    import("./config-schema.js"),
  ]);
  return { path, config: await loadSettings(found, CONFIG_SCHEMA, true) };
}

/**
 * The options of a sandbox, completed from the user's configuration file where neither they nor the environment say anything. A sandbox that exists
 * stays as it was made. The command line does this; `openSandbox` itself reads no configuration.
 */
export async function withUserConfig<T extends Options>(options: T): Promise<T> {
  const { id, name, ifExists, snapshot } = options;
  if (id !== undefined) return options;
  const loaded = await loadUserConfig();
  if (loaded === undefined) return options;
  if (ifExists === "reopen" && name !== undefined && (await findSandboxId(name)) !== undefined) return options;
  const { path, config } = loaded;
  const backend =
    options.backend ??
    (snapshot === undefined
      ? (backendOfEnvironment(process.env) ?? config.backend)
      : (await findSnapshotRecord(snapshot)).backend);
  const defaults = await defaultsFor(backend ?? chooseBackend(process.env), path, config);
  if (snapshot !== undefined || options.baseDir !== undefined) delete defaults.workDir;
  if (snapshot !== undefined) delete defaults.image;
  const limits = { ...defaults.limits, ...options.limits };
  const own = Object.entries(defaults.own).map(([key, value]) => [key, { ...value, ...ownOf(options, key) }]);
  const { own: _, ...plain } = defaults;
  return {
    ...(snapshot === undefined && backend !== undefined && { backend }),
    ...plain,
    ...options,
    ...(Object.keys(limits).length > 0 && { limits }),
    ...Object.fromEntries(own),
  };
}

type Defaults = Pick<Options, "image" | "network" | "limits" | "workDir" | "paths" | "ttl" | "idleTimeout"> & {
  /** The options of the backend under its name. */
  own: Readonly<Record<string, object>>;
};

async function defaultsFor(name: string, path: string, config: UserConfig): Promise<Defaults> {
  const backend = await loadBackend(name);
  const ofBackend: BackendDefaults = config.backends?.[backend.name] ?? {};
  const { network, workDir, paths, ttl, idleTimeout } = { ...config, ...ofBackend };
  // An image for all backends is for those that use one.
  const image = ofBackend.image ?? (backend.images === undefined ? undefined : config.image);
  const limits = { ...toLimits(config.limits), ...toLimits(ofBackend.limits) };
  const { options = {} } = ofBackend;
  const able = backend.capabilities();
  for (const key of Object.keys(options)) {
    const { writtenOptions = [] } = backend;
    if (writtenOptions.includes(key)) continue;
    const nearest = nearestName(key, writtenOptions);
    throw new SandboxError(
      "invalid_argument",
      `${path}: backends.${backend.name}.options.${key} can't be in this file`,
      {
        hint:
          nearest === undefined ? `it can have: ${writtenOptions.join(", ") || "none"}` : `did you mean "${nearest}"?`,
      },
    );
  }
  return {
    ...(image !== undefined && { image }),
    ...(network !== undefined && { network }),
    ...(Object.keys(limits).length > 0 && { limits }),
    // What only some backends can do is a default for those.
    ...(workDir !== undefined && able.workDir === true && { workDir }),
    ...(paths !== undefined && able.paths?.includes(paths) === true && { paths }),
    ...(ttl !== undefined && { ttl: toMilliseconds(ttl) }),
    ...(idleTimeout !== undefined && { idleTimeout: toMilliseconds(idleTimeout) }),
    own: Object.keys(options).length > 0 ? { [backend.name]: options } : {},
  };
}

function toLimits({ memory, disk, ...rest }: NonNullable<UserConfig["limits"]> = {}): Limits {
  return {
    ...rest,
    ...(memory !== undefined && { memory: toBytes(memory) }),
    ...(disk !== undefined && { disk: toBytes(disk) }),
  };
}

function ownOf(options: Options, backend: string): object {
  return (options as Readonly<Record<string, object | undefined>>)[backend] ?? {};
}
