import type { NetworkPolicy, SecretRule } from "../../../contracts/types.js";
import type { Fields, Schema } from "../../util/schema.js";
import * as is from "../../util/schema.js";
import { secretsSchema } from "../egress.js";
import { checkWorkDir } from "../lifecycle.js";
import { backendName, network, schemaLine } from "./fields.js";
import { lifetime, size } from "./quantity.js";

/** Defaults of new sandboxes. */
export interface ConfiguredDefaults {
  image?: string;
  network?: NetworkPolicy;
  limits?: { memory?: number | string; cpus?: number; pids?: number; disk?: number | string };
  workDir?: string;
  paths?: "workdir" | "sandbox";
  ttl?: number | string;
  idleTimeout?: number | string;
}

/** Defaults of new sandboxes of one backend. */
export interface BackendDefaults extends ConfiguredDefaults {
  /** The backend's own options; never a secret. */
  options?: Readonly<Record<string, unknown>>;
}

/** The user's configuration file, as it is written. */
export interface UserConfig extends ConfiguredDefaults {
  $schema?: string;
  backend?: string;
  /** Secrets by the names of their variables. A sandbox gets one only when it is asked for by its name. */
  secrets?: Readonly<Record<string, SecretRule>>;
  backends?: Readonly<Record<string, BackendDefaults>>;
}

const defaults: Fields<ConfiguredDefaults> = {
  image: is.noted(is.imageName("the name of an image, such as node:22-bookworm-slim"), {
    description: "Image of the container or machine, for backends that use one.",
  }),
  network: is.noted(network, { description: "What a sandbox can reach: none, full, or allow with a list of hosts." }),
  limits: is.object({ memory: size, cpus: is.cores, pids: is.positive, disk: size }),
  workDir: is.noted(is.custom<string>(checkWorkDir, { type: "string" }), { description: "Path of the files inside." }),
  paths: is.noted(is.oneOf("workdir", "sandbox"), { description: "How far file calls reach." }),
  ttl: is.noted(lifetime, { description: "How long a sandbox lives, kept or not." }),
  idleTimeout: is.noted(lifetime, { description: "When a sandbox that nobody uses is closed." }),
};

/** What the user's configuration file looks like. */
export const CONFIG_SCHEMA: Schema<UserConfig> = is.object(
  {
    $schema: schemaLine,
    backend: is.noted(backendName, { description: "Backend of new sandboxes." }),
    ...defaults,
    secrets: is.noted(secretsSchema, {
      description: "Secrets by the names of their variables, for --secret NAME. Never their values.",
    }),
    backends: is.noted(
      is.record(
        is.object<BackendDefaults>({
          ...defaults,
          options: is.noted(is.record(is.anything), { description: "The backend's own options; never a secret." }),
        }),
        backendName,
      ),
      { description: "Defaults for single backends, by their names. They win over those for all." },
    ),
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Glovebox configuration file",
    description: "A user's defaults for new sandboxes of the command glovebox.",
  },
);
