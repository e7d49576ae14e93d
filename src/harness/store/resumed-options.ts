import { SandboxError } from "../../../contracts/errors.js";
import type { DaggerOptions } from "../../sandbox/dagger.js";
import type { DaytonaOptions } from "../../sandbox/daytona.js";
import type { DockerOptions } from "../../sandbox/docker.js";
import type { LocalOptions } from "../../sandbox/local.js";
import type { BackendName, SandboxOptions } from "../../sandbox/types.js";
import type { VercelOptions } from "../../sandbox/vercel.js";

/**
 * What becomes of an option of the sandbox when its run goes on.
 *
 * - `written`: it stands in the plan of the run, and the sandbox gets it again.
 * - `again`: it is a secret or a thing of this process, so it is not written. Who goes on with the run has to give it
 *   again; without it the run is refused.
 * - `session`: it restricts nothing, and each session has its own.
 * - `run`: the run itself decides it.
 */
export type OnResume = "written" | "again" | "session" | "run";

type Each<T> = Readonly<Record<keyof Required<T>, OnResume>>;

/** Every option of a sandbox. One that is added has to be put here. */
export const ON_RESUME: Readonly<Record<Exclude<keyof Required<SandboxOptions>, BackendName>, OnResume>> = {
  image: "written",
  workspace: "written",
  gitFilters: "written",
  gitAlternates: "written",
  network: "written",
  limits: "written",
  mounts: "written",
  isolation: "written",
  allow: "written",
  operationTimeout: "written",
  runTimeout: "written",
  maxOutput: "written",
  env: "again",
  signal: "session",
  onEvent: "session",
  githubToken: "session",
  repo: "run",
  branch: "run",
  baseDir: "run",
  id: "run",
  keep: "run",
};

/** The same for the options of single backends. */
export const BACKENDS_ON_RESUME: {
  readonly local: Each<LocalOptions>;
  readonly daytona: Each<DaytonaOptions>;
  readonly docker: Each<DockerOptions>;
  readonly vercel: Each<VercelOptions>;
  readonly dagger: Each<DaggerOptions>;
} = {
  local: {},
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
    // Their variables may hold passwords.
    services: "again",
    secrets: "written",
    linger: "written",
    sdk: "again",
  },
};

/** The options of a sandbox that stand in the plan of a run; none of them can be a secret. */
export type WrittenOptions = Omit<
  SandboxOptions,
  "env" | "signal" | "onEvent" | "githubToken" | "repo" | "id" | "keep"
>;

/** Splits options into what the plan holds and the names of what has to be given again. */
export function splitOptions(options: SandboxOptions): { written: WrittenOptions; again: string[] } {
  const written: Record<string, unknown> = {};
  const again: string[] = [];
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (isBackend(name)) {
      const fates = BACKENDS_ON_RESUME[name] as Readonly<Record<string, OnResume>>;
      const given = Object.entries(value as object).filter(([, each]) => each !== undefined);
      written[name] = Object.fromEntries(given.filter(([key]) => fates[key] === "written"));
      again.push(...given.filter(([key]) => fates[key] !== "written").map(([key]) => `${name}.${key}`));
    } else if (name === "env") again.push(...Object.keys(value as object).map((key) => `env.${key}`));
    else if (fateOf(name) === "written") written[name] = value;
    else if (fateOf(name) === "again") again.push(name);
  }
  return { written: written as WrittenOptions, again };
}

/** The options of a sandbox when its run goes on: all that it had, or none: `invalid_argument` names what is missing. */
export function resumedOptions(
  runId: string,
  written: WrittenOptions,
  again: readonly string[],
  given: SandboxOptions = {},
): SandboxOptions {
  const offered = splitOptions(given);
  const other = [...Object.keys(offered.written).flatMap((name) => namesIn(name, offered.written)), ...ofTheRun(given)];
  if (other[0] !== undefined) {
    throw new SandboxError("invalid_argument", `Run "${runId}" goes on with the ${other[0]} that it was started with`, {
      hint: `leave sandbox.${other[0]} out, or start a new run`,
    });
  }
  const missing = again.filter((name) => !offered.again.includes(name));
  if (missing.length > 0) {
    throw new SandboxError(
      "invalid_argument",
      `Run "${runId}" was started with options that are not written down: ${missing.map((name) => `sandbox.${name}`).join(", ")}`,
      { hint: "resumeRun({ runId, sandbox }) takes them again; without them the sandbox would be another one" },
    );
  }
  const backends = Object.keys(BACKENDS_ON_RESUME).filter(isBackend);
  const merged = backends.flatMap((name) =>
    written[name] === undefined && given[name] === undefined ? [] : [[name, { ...written[name], ...given[name] }]],
  );
  return { ...written, ...given, ...Object.fromEntries(merged) };
}

function namesIn(name: string, written: WrittenOptions): string[] {
  if (!isBackend(name)) return [name];
  return Object.keys(written[name] ?? {}).map((key) => `${name}.${key}`);
}

function ofTheRun(given: SandboxOptions): string[] {
  return Object.keys(given).filter((name) => fateOf(name) === "run");
}

function fateOf(name: string): OnResume | undefined {
  return (ON_RESUME as Readonly<Record<string, OnResume | undefined>>)[name];
}

function isBackend(name: string): name is BackendName {
  return Object.hasOwn(BACKENDS_ON_RESUME, name);
}
