import { existsSync } from "node:fs";
import { isBuiltin } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Backend } from "../../contracts/backend.js";
import { SandboxError } from "../../contracts/errors.js";
import { addBackendName } from "../machine/backend-names.js";
import { CODE, isCode } from "../util/is-code.js";
import { nearestName } from "../util/nearest.js";
import { invalidArgument } from "../util/schema.js";

/** Loads a backend on first use. */
export type BackendLoader = () => Promise<Backend>;

const backends = new Map<string, BackendLoader>([
  ["local", async () => (await import("./backends/local.js")).local],
  ["daytona", async () => (await import("./backends/daytona.js")).daytona],
  ["docker", async () => (await import("./backends/docker.js")).docker],
  ["vercel", async () => (await import("./backends/vercel.js")).vercel],
  ["dagger", async () => (await import("./backends/dagger.js")).dagger],
  ["kubernetes", async () => (await import("./backends/kubernetes.js")).kubernetes],
]);

for (const name of backends.keys()) addBackendName(name);

const NAME = /^[a-z][a-z0-9-]{0,63}$/;
/** A package, or a file that it exports; not a URL or a path. */
const PACKAGE = /^(?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*$/;

/** Registers a backend under a name, for `openSandbox({ backend: name })`. A name can be registered only once. */
export function registerBackend(name: string, load: BackendLoader): void {
  if (typeof name !== "string" || !NAME.test(name)) {
    throw invalidArgument("name", `a name that matches ${NAME.source}`, name);
  }
  if (typeof load !== "function") throw invalidArgument("load", "a function", load);
  if (backends.has(name)) {
    throw new SandboxError("conflict", `A backend "${name}" is already registered`, {
      retryable: false,
      hint: "choose another name",
    });
  }
  backends.set(name, load);
  addBackendName(name);
}

/** The names that `openSandbox` knows. */
export function backendNames(): string[] {
  return [...backends.keys()];
}

/** Chooses the backend if the caller names none: the one that the environment names, otherwise local. */
export function chooseBackend(env: Readonly<Record<string, string | undefined>>): string {
  return backendOfEnvironment(env) ?? "local";
}

/** The backend that the environment names, otherwise Vercel on Vercel. */
export function backendOfEnvironment(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { GLOVEBOX_BACKEND, VERCEL, VERCEL_OIDC_TOKEN, VERCEL_TOKEN, VERCEL_TEAM_ID, VERCEL_PROJECT_ID } = env;
  if (GLOVEBOX_BACKEND) return GLOVEBOX_BACKEND;
  if (VERCEL === "1" || VERCEL_OIDC_TOKEN) return "vercel";
  if (VERCEL_TOKEN && VERCEL_TEAM_ID && VERCEL_PROJECT_ID) return "vercel";
  return undefined;
}

/** Loads a backend by its registered name, by the path of a module, or by the name of a package next to Glovebox. */
export async function loadBackend(name: string): Promise<Backend> {
  const load = backends.get(name);
  const backend: Partial<Backend> | undefined = load === undefined ? (await importBackend(name)).backend : await load();
  const isBackend = [backend?.create, backend?.removeResource, backend?.capabilities].every(
    (each) => typeof each === "function",
  );
  if (!isBackend || typeof backend?.name !== "string" || !NAME.test(backend.name)) {
    throw new SandboxError("invalid_argument", `The module of the backend "${name}" exports no "backend"`, {
      hint: "export const backend: Backend = { name, capabilities, create, removeResource, … }",
    });
  }
  const loaded = backend as Backend;
  // The records of its sandboxes contain its name, not the module it came from.
  if (load === undefined && !backends.has(loaded.name)) registerBackend(loaded.name, async () => loaded);
  return loaded;
}

/** All registered backends that can be loaded. */
export async function loadBackends(only?: string): Promise<Backend[]> {
  const loaded = backendNames()
    .filter((name) => (only ?? name) === name)
    .map((name) => loadBackend(name));
  return (await Promise.allSettled(loaded)).flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
}

interface BackendModule {
  readonly backend?: Partial<Backend>;
}

async function importBackend(name: string): Promise<BackendModule> {
  if (name === "" || name.includes("\0") || isBuiltin(name)) throw unknownBackend(name);
  if (/^(\.{0,2}\/|file:)/.test(name)) {
    const url = name.startsWith("file:") ? new URL(name) : pathToFileURL(resolve(name));
    if (!existsSync(url)) throw unknownBackend(name);
    if (!isCode(url.pathname)) {
      const hint = `rename it: ${CODE.join(", ")}`;
      throw new SandboxError("invalid_argument", `The backend "${name}" does not have the file extension of code`, {
        hint,
      });
    }
    return (await import(url.href)) as BackendModule;
  }
  if (!PACKAGE.test(name)) throw unknownBackend(name);
  try {
    // Resolved next to Glovebox itself, never from the current directory, which may not be trusted.
    return (await import(name)) as BackendModule;
  } catch (cause) {
    if (!isMissing(cause, name)) throw cause;
    throw unknownBackend(name, cause, LOOKED_UP);
  }
}

/** A package that is there but lacks one of its own dependencies is broken, not missing. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message = "" } = error as { code?: string; message?: string };
  if (code === "ERR_INVALID_MODULE_SPECIFIER") return true;
  if (code !== "ERR_MODULE_NOT_FOUND") return false;
  return [name, packageOf(name)].some((missing) => message.includes(`'${missing}'`));
}

function packageOf(name: string): string {
  return name.split("/", name.startsWith("@") ? 2 : 1).join("/");
}

const LOOKED_UP = "packages are looked up next to Glovebox, not in this directory; use a path: ./node_modules/<name>/…";

function unknownBackend(name: string, cause?: unknown, hint?: string): SandboxError {
  const known = backendNames();
  const nearest = nearestName(name, known);
  return new SandboxError(
    "invalid_argument",
    `Unknown backend "${name}"; use ${known.join(", ")}, the path of a module or the name of a package`,
    { cause, hint: nearest === undefined ? hint : `did you mean "${nearest}"?` },
  );
}
