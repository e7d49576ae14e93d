import { SandboxError } from "../../../contracts/errors.js";
import type { BackendName, SandboxOptions } from "../../sandbox/types.js";
import { isBackendOption, writtenOptionsOf } from "../backend-facts.js";

/**
 * What becomes of an option of the sandbox when its run is resumed.
 *
 * - `written`: it is in the plan of the run, and the sandbox gets it again.
 * - `again`: it is a secret or a thing of this process, so it is not written. Whoever resumes the run has to give it
 *   again; without it the run is refused.
 * - `session`: it restricts nothing, and each session has its own.
 * - `run`: the run itself decides it.
 */
export type OnResume = "written" | "again" | "session" | "run";

/** Every option of a sandbox. One that is added has to be put here; those of a single backend are its own to declare. */
export const ON_RESUME: Readonly<Record<Exclude<keyof Required<SandboxOptions>, BackendName>, OnResume>> = {
  name: "written",
  labels: "written",
  image: "written",
  snapshot: "written",
  ttl: "written",
  idleTimeout: "written",
  workspace: "written",
  workDir: "written",
  paths: "written",
  gitFilters: "written",
  gitAlternates: "written",
  network: "written",
  secrets: "written",
  limits: "written",
  mounts: "written",
  publish: "written",
  audit: "written",
  isolation: "written",
  allow: "written",
  operationTimeout: "written",
  runTimeout: "written",
  maxOutput: "written",
  env: "again",
  signal: "session",
  onEvent: "session",
  onBlocked: "session",
  githubToken: "session",
  repo: "run",
  branch: "run",
  baseDir: "run",
  id: "run",
  ifExists: "run",
  keep: "run",
};

/** The options of a sandbox that are in the plan of a run; none of them can be a secret. */
export type WrittenOptions = Omit<
  SandboxOptions,
  "env" | "signal" | "onEvent" | "onBlocked" | "githubToken" | "repo" | "id" | "ifExists" | "keep"
>;

/** Splits options into what goes into the plan and the names of what has to be given again. */
export async function splitOptions(options: SandboxOptions): Promise<{ written: WrittenOptions; again: string[] }> {
  const written: Record<string, unknown> = {};
  const again: string[] = [];
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (isBackendOption(name)) {
      const given = Object.entries(value as object).filter(([, each]) => each !== undefined);
      const allowed = await writtenOptionsOf(name);
      const isWritten = ([key]: [string, unknown]): boolean => allowed.includes(key);
      written[name] = Object.fromEntries(given.filter(isWritten));
      again.push(...given.filter((each) => !isWritten(each)).map(([key]) => `${name}.${key}`));
    } else if (name === "env") again.push(...Object.keys(value as object).map((key) => `env.${key}`));
    else if (fateOf(name) === "written") written[name] = value;
    else if (fateOf(name) === "again") again.push(name);
  }
  return { written: written as WrittenOptions, again };
}

/** The options of a sandbox when its run is resumed: all that it had, or none: `invalid_argument` names what is missing. */
export async function resumedOptions(
  runId: string,
  written: WrittenOptions,
  again: readonly string[],
  given: SandboxOptions = {},
): Promise<SandboxOptions> {
  const offered = await splitOptions(given);
  const other = [...Object.keys(offered.written).flatMap((name) => namesIn(name, offered.written)), ...ofTheRun(given)];
  if (other[0] !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `Run "${runId}" is resumed with the ${other[0]} that it was started with`,
      {
        hint: `leave sandbox.${other[0]} out, or start a new run`,
      },
    );
  }
  const missing = again.filter((name) => !offered.again.includes(name));
  if (missing.length > 0) {
    throw new SandboxError(
      "invalid_argument",
      `Run "${runId}" was started with options that are not written down: ${missing.map((name) => `sandbox.${name}`).join(", ")}`,
      { hint: "resumeRun({ runId, sandbox }) takes them again; without them the sandbox would be another one" },
    );
  }
  const backends = Object.keys({ ...written, ...given }).filter(isBackendOption);
  const merged = backends.map((name) => [name, { ...ofBackend(written, name), ...ofBackend(given, name) }]);
  return { ...written, ...given, ...Object.fromEntries(merged) };
}

function namesIn(name: string, written: WrittenOptions): string[] {
  if (!isBackendOption(name)) return [name];
  return Object.keys(ofBackend(written, name)).map((key) => `${name}.${key}`);
}

function ofBackend(options: WrittenOptions, name: string): object {
  return (options as Readonly<Record<string, object | undefined>>)[name] ?? {};
}

function ofTheRun(given: SandboxOptions): string[] {
  return Object.keys(given).filter((name) => fateOf(name) === "run");
}

function fateOf(name: string): OnResume | undefined {
  return (ON_RESUME as Readonly<Record<string, OnResume | undefined>>)[name];
}
