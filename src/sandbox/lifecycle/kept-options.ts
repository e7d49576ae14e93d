import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../contracts/errors.js";
import type { BackendName, SandboxOptions } from "../../../contracts/sandbox.js";
import type { Exposure, SandboxRecord, SandboxRules } from "../../ledger.js";
import { otherThan } from "./made-options.js";

/** What happens to an option when a kept sandbox is reopened. */
export type OnReopen = "made" | "restored" | "fixed" | "call";

/**
 * What happens to each option when a kept sandbox is reopened. Add every new option here.
 *
 * - `made`: it made the sandbox and can't be given again.
 * - `restored`: it stays as it was unless the call changes it.
 * - `fixed`: it stays as it was; a call with another value is refused.
 * - `call`: each call sets it anew. Nothing that restricts a sandbox may be one of these.
 *
 * The options of a backend are not here: the backend saves what restricts a sandbox, or refuses it.
 */
export const ON_REOPEN: Readonly<Record<Exclude<keyof Required<SandboxOptions>, BackendName>, OnReopen>> = {
  repo: "made",
  branch: "made",
  baseDir: "made",
  workspace: "made",
  workDir: "made",
  image: "made",
  snapshot: "made",
  ttl: "made",
  gitFilters: "made",
  gitAlternates: "made",
  name: "fixed",
  labels: "fixed",
  id: "call",
  ifExists: "call",
  keep: "call",
  env: "call",
  signal: "call",
  onEvent: "call",
  onBlocked: "call",
  githubToken: "call",
  runTimeout: "call",
  idleTimeout: "restored",
  operationTimeout: "restored",
  maxOutput: "restored",
  allow: "restored",
  mounts: "restored",
  publish: "restored",
  secrets: "restored",
  audit: "restored",
  network: "fixed",
  limits: "fixed",
  isolation: "fixed",
  paths: "fixed",
};

const RESTORED = [
  "idleTimeout",
  "operationTimeout",
  "maxOutput",
  "allow",
  "mounts",
  "publish",
  "secrets",
  "audit",
] as const;
const FIXED = ["name", "labels", "network", "limits", "isolation", "paths"] as const;

/** What restricts a sandbox with these options. Contains no secret. */
export function rulesOf(opts: SandboxOptions, exposure?: Exposure): SandboxRules {
  const { network = "none", limits = {}, isolation = "required", paths } = opts;
  const options = Object.fromEntries(
    RESTORED.flatMap((name) => (opts[name] === undefined ? [] : [[name, opts[name]]])),
  );
  const more = { ...(paths === "sandbox" && { paths }), ...(exposure !== undefined && { exposure }) };
  return { network, limits, isolation, ...more, options };
}

/** What restricts a kept sandbox. Version 0.1 had it in the plan of its backend. */
export function rulesOfRecord({ rules, reopen }: SandboxRecord): SandboxRules {
  if (rules !== undefined) return rules;
  const old = (reopen ?? {}) as Partial<SandboxRules> & { settings?: SandboxOptions; plan?: SandboxOptions };
  return {
    network: old.network ?? old.settings?.network ?? "full",
    limits: old.limits ?? old.plan?.limits ?? {},
    isolation: old.isolation ?? "required",
    options: old.options ?? {},
  };
}

/**
 * The options of a call that reopens a kept sandbox, completed from its record. A call with another network, other limits, another isolation or other
 * paths than the sandbox was made with is refused, because it would not get them.
 */
export function reopenOptions(
  opts: SandboxOptions,
  rules: SandboxRules,
  { name, labels = {} }: Pick<SandboxRecord, "name" | "labels">,
): SandboxOptions {
  const { paths = "workdir" } = rules;
  const made = { ...rules, name, labels, paths };
  for (const option of FIXED) {
    if (opts[option] === undefined || isDeepStrictEqual(opts[option], made[option])) continue;
    if (opts.ifExists === "reopen") {
      throw new SandboxError(
        "conflict",
        `Sandbox "${name}" was made with ${otherThan(option)} than this call gives (${JSON.stringify(opts[option])})`,
        { retryable: false, hint: `omit ${option}, or choose another name` },
      );
    }
    throw new SandboxError(
      "invalid_argument",
      `Option ${option} (${JSON.stringify(opts[option])}) can't be combined with id: the sandbox was made with ${JSON.stringify(made[option]) ?? "none"}`,
      { hint: `omit ${option}, or make another sandbox` },
    );
  }
  const { network, limits, isolation, options } = rules;
  return { ...options, ...opts, ...(name !== undefined && { name }), labels, network, limits, isolation, paths };
}

/** The variables that a kept sandbox was opened with the last time and that this call does not set. */
export function missingVariables({ envNames = [] }: SandboxRecord, { env = {} }: SandboxOptions): string[] {
  return envNames.filter((name) => env[name] === undefined);
}
