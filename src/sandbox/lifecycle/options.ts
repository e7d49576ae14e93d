import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy } from "../../../contracts/types.js";
import { backendOptionNames } from "../../machine/backend-names.js";
import { branchNameFault } from "../../util/git/branch-name.js";
import * as is from "../../util/schema.js";
import { check, invalidArgument, type Schema } from "../../util/schema.js";
import { assertVariables, networkSchema, secretsSchema } from "../egress.js";
import { type BackendOptions, MAX_FILE_BYTES, type SandboxOptions } from "../types.js";
import { CREATING } from "./made-options.js";
import { labelsSchema, nameSchema, referenceSchema } from "./naming.js";
import { checkWorkDir } from "./work-dir.js";

/** `ext::sh -c ...` and its like make git run a program of the caller's choosing. */
const TRANSPORT_HELPER = /^[A-Za-z0-9+.-]*::/;

const repo = is.and(is.path, (value, name) => {
  if (value.startsWith("-")) throw invalidArgument(name, "a path or URL that does not start with a dash", value);
  if (TRANSPORT_HELPER.test(value)) throw invalidArgument(name, "a path or a plain URL", value);
});

const branch = is.and(is.text, (value, name) => {
  const fault = branchNameFault(value);
  if (fault !== undefined) throw invalidArgument(name, `a branch name (${fault})`, value);
});

const image = is.and(is.text, (value, name) => {
  if (value.startsWith("-") || /\s/.test(value)) throw invalidArgument(name, "the name of an image", value);
});

/** The option `network`. */
export const networkOption: Schema<NetworkPolicy> = networkSchema({
  expected: '"none", "full" or { allow: [...] }',
  least: 0,
  isHostLoopbackKnown: true,
});

const target = is.and(is.path, (value, name) => {
  if (!value.startsWith("/")) throw invalidArgument(name, "an absolute path", value);
});

/** The options of a backend, which it checks itself. */
const ofBackend = is.custom<object>((value, name) => {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  throw invalidArgument(name, "an object", Array.isArray(value) ? "an array" : value);
});

const MAX_LIFETIME = 30 * 24 * 3_600_000;
const lifetime = is.whole(1, MAX_LIFETIME, `whole milliseconds from 1 to ${MAX_LIFETIME} (30 days)`);

const sandboxOptions: Schema<Omit<SandboxOptions, keyof BackendOptions>> = is.object(
  {
    repo,
    branch,
    baseDir: is.path,
    workspace: is.oneOf("worktree", "overlay", "copy"),
    workDir: is.custom(checkWorkDir),
    paths: is.oneOf("workdir", "sandbox"),
    image,
    snapshot: is.matching(/^[a-z0-9][a-z0-9._-]{0,80}$/, "the id or name of a snapshot"),
    id: referenceSchema,
    name: nameSchema,
    ifExists: is.oneOf("fail", "reopen"),
    labels: labelsSchema,
    keep: is.union('true, false or "all"', is.flag, is.oneOf("all")),
    ttl: lifetime,
    idleTimeout: lifetime,
    operationTimeout: is.timeout,
    runTimeout: is.timeout,
    maxOutput: is.whole(0, MAX_FILE_BYTES),
    env: is.env,
    allow: is.list(is.text),
    network: networkOption,
    secrets: secretsSchema,
    limits: is.object({ memory: is.positive, cpus: is.cores, pids: is.positive, disk: is.positive }),
    isolation: is.oneOf("required", "none"),
    mounts: is.list(is.object({ source: is.required(is.path), target, writable: is.flag })),
    publish: is.list(is.port),
    signal: is.signal,
    onEvent: is.callback(),
    onBlocked: is.callback(),
    audit: is.path,
    githubToken: is.token,
    gitFilters: is.list(is.matching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "the name of a filter")),
    gitAlternates: is.list(is.path),
  },
  {},
  // openSandbox has taken it.
  { also: ["backend"] },
);

const OF_REPOSITORY = ["branch", "workspace", "gitFilters", "gitAlternates"] as const;

/** Refuses options that are wrong, unknown or do not go together, before anything is created. */
export function validateSandboxOptions(
  opts: unknown,
  backends: readonly string[] = [],
): asserts opts is SandboxOptions {
  const own = Object.fromEntries([...backendOptionNames(), ...backends].map((name) => [name, ofBackend]));
  const all = is.noted(sandboxOptions, { properties: { ...sandboxOptions.properties, ...own } });
  check(opts, all, "options");
  const given = opts as SandboxOptions;
  if (given.id !== undefined) {
    for (const name of CREATING) {
      if (given[name] !== undefined)
        throw excluded(name, String(given[name]), "id", "a reopened sandbox is already made");
    }
    if (given.ifExists !== undefined)
      throw excluded("ifExists", given.ifExists, "id", "give name instead of id, or leave ifExists out");
  }
  assertVariables(given.secrets ?? {}, given.env ?? {});
  if (given.ifExists !== undefined && given.name === undefined) {
    throw new SandboxError("invalid_argument", `Option ifExists ("${given.ifExists}") needs the option name`, {
      hint: "add name, or leave ifExists out",
    });
  }
  if (given.baseDir !== undefined && given.repo !== undefined) {
    throw excluded("baseDir", given.baseDir, "repo", "choose one of the two");
  }
  if (given.workDir !== undefined && given.baseDir !== undefined) {
    throw new SandboxError("unsupported", `Option workDir ("${given.workDir}") does not go together with baseDir`, {
      hint: "a directory of yours has the same path inside as outside; leave workDir out",
    });
  }
  if (given.baseDir !== undefined && given.snapshot !== undefined) {
    throw excluded("snapshot", given.snapshot, "baseDir", "its files go into a new directory; leave baseDir out");
  }
  // The repository of a snapshot is in its record.
  for (const name of given.snapshot === undefined ? OF_REPOSITORY : []) {
    if (given[name] !== undefined && given.repo === undefined) {
      throw new SandboxError("invalid_argument", `Option ${name} ("${given[name]}") needs the option repo`, {
        hint: `add repo, or leave ${name} out`,
      });
    }
  }
}

function excluded(name: string, value: string, other: string, hint: string): SandboxError {
  return new SandboxError("invalid_argument", `Option ${name} ("${value}") does not go together with ${other}`, {
    hint,
  });
}
