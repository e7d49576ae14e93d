import { existsSync } from "node:fs";
import { isBuiltin } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Capabilities } from "../../contracts/types.js";
import { CODE, isCode } from "../util/is-code.js";
import { nearestName } from "../util/nearest.js";
import { invalidArgument } from "./checks.js";
import { SandboxError } from "./errors.js";
import type { Finding } from "./finding.js";
import type { Owner } from "./owner.js";
import type { Resource } from "./record.js";
import type { SnapshotRecord } from "./snapshot-record.js";
import type { Sandbox, SandboxOptions } from "./types.js";

/** A sandbox of ours at a service, as its labels describe it. */
export interface RemoteSandboxInfo {
  readonly id: string;
  readonly owner: Owner;
  /** Whether it shall stay when its owner is gone. */
  readonly keep: boolean;
  /** ISO 8601. */
  readonly createdAt?: string;
  remove(): Promise<void>;
}

/** What the module of a backend exports. */
export interface BackendModule {
  /** Checks the options, creates what is needed and returns a sandbox that is ready. */
  open(opts: SandboxOptions): Promise<Sandbox>;
  /** Refuses options that it can never keep, as `open` would; asks nobody and makes nothing. */
  check?(opts: SandboxOptions): void;
  /** Takes away one resource that a record of the ledger names, idempotently; throws when it is still there. */
  removeResource?(resource: Resource): Promise<void>;
  /** Our sandboxes at the service, also those that no ledger here knows. Needs credentials in the environment. */
  listRemote?(): Promise<RemoteSandboxInfo[]>;
  /** Removes from the backend's cache what is not in use, until the rest has so many bytes; gives what was removed. */
  trimCache?(maxBytes: number): Promise<string[]>;
  /** Removes what dead owners left with the backend's service and no record knows of; gives the names of what was, or would be, removed. */
  sweep?(opts: { dryRun?: boolean }): Promise<string[]>;
  /** Takes away what a snapshot's record names, idempotently. The record itself is not its business. */
  removeSnapshot?(record: SnapshotRecord): Promise<void>;
  /** Looks at this machine: what the backend needs, whether it is there, what mends it. Makes nothing that stays. */
  probe?(): Promise<Finding[]>;
  /** What the backend keeps here unless an option changes that. Asks nobody and makes nothing. */
  capabilities?(): Capabilities;
  /** What the conformance kit is to know about the backend. */
  readonly conformance?: {
    /** Case id to the reason why it cannot hold. */
    readonly skips?: Readonly<Record<string, string>>;
    /** Host path that holds the files of a sandbox. */
    directoryOf?(sandbox: Sandbox): string | undefined;
    /** Whether `network: "full"` shares the loopback of this process. */
    readonly sharesNetwork?: boolean;
  };
}

/** Loads the module of a backend, when it is first used. */
export type BackendLoader = () => Promise<BackendModule>;

const backends = new Map<string, BackendLoader>([
  ["local", () => import("./local.js")],
  ["daytona", () => import("./daytona.js")],
  ["docker", () => import("./docker.js")],
  ["vercel", () => import("./vercel.js")],
  ["dagger", () => import("./dagger.js")],
]);

const NAME = /^[a-z][a-z0-9-]{0,63}$/;
/** A package, or a file that it exports; no URL and no path. */
const PACKAGE = /^(?:@[\w~-][\w.~-]*\/)?[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*$/;

/** Adds a backend under a name, for `openSandbox({ backend: name })`. A name can be given only once. */
export function registerBackend(name: string, load: BackendLoader): void {
  if (typeof name !== "string" || !NAME.test(name)) {
    throw invalidArgument("name", `a name that matches ${NAME.source}`, name);
  }
  if (typeof load !== "function") throw invalidArgument("load", "a function", load);
  if (backends.has(name)) {
    throw new SandboxError("conflict", `There is already a backend "${name}"`, {
      retryable: false,
      hint: "choose another name",
    });
  }
  backends.set(name, load);
}

/** The names that `openSandbox` knows. */
export function backendNames(): string[] {
  return [...backends.keys()];
}

/** Picks the backend when the caller names none: the environment's choice, else Vercel on Vercel, else local. */
export function chooseBackend(env: Readonly<Record<string, string | undefined>>): string {
  const { GLOVEBOX_BACKEND, VERCEL, VERCEL_OIDC_TOKEN, VERCEL_TOKEN, VERCEL_TEAM_ID, VERCEL_PROJECT_ID } = env;
  if (GLOVEBOX_BACKEND) return GLOVEBOX_BACKEND;
  if (VERCEL === "1" || VERCEL_OIDC_TOKEN) return "vercel";
  if (VERCEL_TOKEN && VERCEL_TEAM_ID && VERCEL_PROJECT_ID) return "vercel";
  return "local";
}

/** Loads a backend by its registered name, by the path of a module, or by the name of a package beside Glovebox. */
export async function loadBackend(name: string): Promise<BackendModule> {
  const load = backends.get(name);
  const module: Partial<BackendModule> = load === undefined ? await importBackend(name) : await load();
  if (typeof module?.open !== "function") {
    throw new SandboxError("invalid_argument", `The backend "${name}" exports no function "open"`);
  }
  return module as BackendModule;
}

/** Refuses a backend that there is not, or options that it can never keep, as `openSandbox` would. */
export async function assertBackend(name: string, opts: SandboxOptions): Promise<void> {
  (await loadBackend(name)).check?.(opts);
}

async function importBackend(name: string): Promise<Partial<BackendModule>> {
  if (name === "" || name.includes("\0") || isBuiltin(name)) throw unknownBackend(name);
  if (/^(\.{0,2}\/|file:)/.test(name)) {
    const url = name.startsWith("file:") ? new URL(name) : pathToFileURL(resolve(name));
    if (!existsSync(url)) throw unknownBackend(name);
    if (!isCode(url.pathname)) {
      const hint = `rename it: ${CODE.join(", ")}`;
      throw new SandboxError("invalid_argument", `The extension of the backend "${name}" is not that of code`, {
        hint,
      });
    }
    return (await import(url.href)) as Partial<BackendModule>;
  }
  if (!PACKAGE.test(name)) throw unknownBackend(name);
  try {
    // Looked up beside Glovebox itself, never in the directory that the user is in: that may be anybody's.
    return (await import(name)) as Partial<BackendModule>;
  } catch (cause) {
    if (!isMissing(cause, name)) throw cause;
    throw unknownBackend(name, cause, LOOKED_UP);
  }
}

/** A package that is there but lacks one of its own is broken, not missing. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message = "" } = error as { code?: string; message?: string };
  if (code === "ERR_INVALID_MODULE_SPECIFIER") return true;
  if (code !== "ERR_MODULE_NOT_FOUND") return false;
  return [name, packageOf(name)].some((missing) => message.includes(`'${missing}'`));
}

function packageOf(name: string): string {
  return name.split("/", name.startsWith("@") ? 2 : 1).join("/");
}

const LOOKED_UP = "a package is looked up beside Glovebox, not in this directory; give a path: ./node_modules/<name>/…";

function unknownBackend(name: string, cause?: unknown, hint?: string): SandboxError {
  const known = backendNames();
  const nearest = nearestName(name, known);
  return new SandboxError(
    "invalid_argument",
    `Unknown backend "${name}"; known are ${known.join(", ")}, the path of a module or the name of a package`,
    { cause, hint: nearest === undefined ? hint : `did you mean "${nearest}"?` },
  );
}
