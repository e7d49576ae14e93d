import type { DaggerOptions, DaytonaOptions, DockerOptions, SandboxOptions, VercelOptions } from "../sandbox/types.js";
import { defined } from "../util/defined.js";

/** All that the harness knows about single backends, one function a question; each says what a backend would have to declare. */
const ON_THIS_MACHINE: readonly string[] = ["local", "docker"];

/**
 * Whether a backend works on a repository of this machine, in which the harness clones, resolves refs and makes branches. Any other clones a
 * URL by itself. Needs: a flag of the backend, known before a sandbox is opened.
 */
export function usesRepositoryHere(backend: string): boolean {
  return ON_THIS_MACHINE.includes(backend);
}

/** The backends of which that is true, for a hint. Needs: the same flag of all registered backends. */
export function backendsWithRepositoryHere(): readonly string[] {
  return ON_THIS_MACHINE;
}

/**
 * Whether much output of a sandbox costs little, so that a list of all files is hashed here and not there. Needs: a flag of the backend or of
 * the open sandbox that says that it runs on this machine.
 */
export function isOutputCheap({ backend }: { readonly backend: string }): boolean {
  return ON_THIS_MACHINE.includes(backend);
}

/** The options of a sandbox that belong to one backend. Needs: the keys of `BackendOptions`. */
export type BackendOptionName = keyof typeof BACKENDS_ON_RESUME;

/** Whether an option of a sandbox belongs to one backend. Needs: the names of the registered backends. */
export function isBackendOption(name: string): name is BackendOptionName {
  return Object.hasOwn(BACKENDS_ON_RESUME, name);
}

/** When a run is resumed, an option is the one that was written to its plan, or has to be given again. */
type Fate = "written" | "again";

/**
 * What becomes of an option of a backend when a run is resumed. Needs: for each option, whether it may be written to a file; a secret or a
 * thing of this process may not. An option that nobody knows is never written.
 */
export function fateOfBackendOption(backend: BackendOptionName, option: string): Fate {
  return (BACKENDS_ON_RESUME[backend] as Readonly<Record<string, Fate>>)[option] ?? "again";
}

type Each<T> = Readonly<Record<keyof Required<T>, Fate>>;

/** Every option of every backend. One that is added has to be put here. */
export const BACKENDS_ON_RESUME: {
  readonly daytona: Each<DaytonaOptions>;
  readonly docker: Each<DockerOptions>;
  readonly vercel: Each<VercelOptions>;
  readonly dagger: Each<DaggerOptions>;
} = {
  daytona: {
    apiKey: "again",
    apiUrl: "written",
    target: "written",
    snapshot: "written",
    resources: "written",
    autoStopMinutes: "written",
    ttlMinutes: "written",
    client: "again",
  },
  docker: {
    host: "written",
    context: "written",
    certPath: "written",
    workDir: "written",
    user: "written",
    hostname: "written",
    pull: "written",
    guest: "written",
    unsafe: "written",
  },
  vercel: {
    token: "again",
    teamId: "written",
    projectId: "written",
    runtime: "written",
    timeout: "written",
    ports: "written",
    region: "written",
    snapshotExpiration: "written",
    fetch: "again",
    sdk: "again",
  },
  dagger: {
    cli: "written",
    session: "again",
    setup: "written",
    // Their variables may be passwords.
    services: "again",
    secrets: "written",
    linger: "written",
    sdk: "again",
  },
};

/** The options of the sandbox in those of a run. Needs: nothing; the spec names `daytona` as an option of the run itself. */
export function sandboxOptionsIn(run: {
  sandbox?: SandboxOptions | undefined;
  daytona?: DaytonaOptions;
}): SandboxOptions {
  return { ...run.sandbox, ...defined({ daytona: run.daytona }) };
}
