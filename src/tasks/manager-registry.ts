import { SandboxError } from "../../contracts/errors.js";
import type { KubernetesOptions } from "../sandbox/kubernetes.js";
import { defined } from "../util/defined.js";
import { nearestName } from "../util/nearest.js";
import { anything, callback, check, invalidArgument, object, type Schema, text } from "../util/schema.js";
import { createContainerManager, managerFields } from "./container-manager.js";
import type { ManagerSettings, SandboxManager } from "./types.js";

/** What `createSandboxManager` takes. */
export interface ManagerOptions extends ManagerSettings {
  /** Name of a registered manager. Default `docker`. */
  backend?: string;
  /** Which Docker engine. Each option wins over DOCKER_HOST and the Docker context. */
  docker?: { host?: string; context?: string; certPath?: string };
  /** Which cluster, and how its pods are made. Without `image` and `workDir`: each container has its own. */
  kubernetes?: Omit<KubernetesOptions, "image" | "workDir">;
}

/** Creates a manager from the options given to `createSandboxManager`. */
export type ManagerFactory = (opts: ManagerOptions) => SandboxManager;
/** Loads the factory of a manager when it is first used. */
export type ManagerLoader = () => Promise<{ createManager: ManagerFactory }>;

interface RegisteredManager {
  readonly load: ManagerLoader;
  /** Refuses wrong options before the manager is loaded. */
  check?(opts: ManagerOptions): void;
}

const NAME = /^[a-z][a-z0-9-]{0,63}$/;
const DEFAULT = "docker";
const dockerOptions: Schema<Omit<ManagerOptions, "kubernetes">> = object({
  ...managerFields,
  backend: text,
  docker: object({ host: text, context: text, certPath: text }),
});

const kubernetesOptions: Schema<Omit<ManagerOptions, "docker">> = object({
  ...managerFields,
  backend: text,
  // The backend itself checks what is in it, when it is loaded.
  kubernetes: anything as Schema<KubernetesOptions>,
});

const managers = new Map<string, RegisteredManager>([
  [
    "docker",
    {
      check: (opts) => check(opts, dockerOptions, "options"),
      async load() {
        const { openContainerEngine } = await import("../sandbox/backends/docker/container-engine.js");
        return {
          createManager: ({ docker, ...settings }) =>
            createContainerManager(() => openContainerEngine(docker), settings),
        };
      },
    },
  ],
  [
    "kubernetes",
    {
      check: (opts) => check(opts, kubernetesOptions, "options"),
      async load() {
        const { openContainerEngine } = await import("../sandbox/backends/kubernetes/container-engine.js");
        return {
          createManager: ({ kubernetes, ...settings }) =>
            createContainerManager(() => openContainerEngine(kubernetes), settings),
        };
      },
    },
  ],
]);

/** Registers a manager for `createSandboxManager({ backend: name })`. A name can be registered only once. */
export function registerManager(name: string, load: ManagerLoader): void {
  if (typeof name !== "string" || !NAME.test(name)) {
    throw invalidArgument("name", `a name that matches ${NAME.source}`, name);
  }
  check(load, callback<ManagerLoader>(), "load");
  if (managers.has(name)) {
    throw new SandboxError("conflict", `A manager "${name}" is already registered`, {
      retryable: false,
      hint: "choose another name",
    });
  }
  managers.set(name, { load });
}

/** Which engine or cluster the options of a sandbox choose, for a manager of the same name. */
export function placeOptions(
  backend: string | undefined,
  sandbox: Readonly<Record<string, unknown>>,
): Pick<ManagerOptions, "docker" | "kubernetes"> {
  if (backend === "docker") {
    const { host, context, certPath } = (sandbox[backend] ?? {}) as NonNullable<ManagerOptions["docker"]>;
    const docker = defined({ host, context, certPath });
    return Object.keys(docker).length > 0 ? { docker } : {};
  }
  if (backend !== "kubernetes" || sandbox[backend] === undefined) return {};
  const { image: _, workDir: _w, ...kubernetes } = sandbox[backend] as KubernetesOptions;
  return Object.keys(kubernetes).length > 0 ? { kubernetes } : {};
}

/** The names of all registered managers. */
export function managerNames(): string[] {
  return [...managers.keys()];
}

/**
 * Creates a manager of batches and tasks. Wrong options are refused at once; a manager of your own is loaded at its first
 * call, and sees its options then.
 */
export function createSandboxManager(opts: ManagerOptions = {}): SandboxManager {
  if (typeof opts !== "object" || opts === null) throw invalidArgument("options", "an object", opts);
  const { backend = DEFAULT, ...rest } = opts;
  const found = managers.get(backend);
  if (found === undefined) throw unknown(backend);
  found.check?.(rest);
  return lazily(backend, async () => (await found.load()).createManager(rest));
}

function lazily(name: string, make: () => Promise<SandboxManager>): SandboxManager {
  let made: Promise<SandboxManager> | undefined;
  const manager = async (): Promise<SandboxManager> => {
    made ??= make();
    const found: Partial<SandboxManager> | undefined = await made;
    if (typeof found?.setupBatch === "function") return found as SandboxManager;
    throw new SandboxError("invalid_argument", `The manager "${name}" has no function "setupBatch"`);
  };
  return {
    setupBatch: async (...args) => (await manager()).setupBatch(...args),
    setupTask: async (...args) => (await manager()).setupTask(...args),
    exec: async (...args) => (await manager()).exec(...args),
    cloneSandboxState: async (...args) => (await manager()).cloneSandboxState(...args),
  };
}

function unknown(name: string): SandboxError {
  const nearest = nearestName(name, managers.keys());
  return new SandboxError(
    "invalid_argument",
    `Unknown manager "${name}"; known managers are ${managerNames().join(", ")}`,
    {
      hint: nearest === undefined ? "registerManager adds one" : `did you mean "${nearest}"?`,
    },
  );
}
