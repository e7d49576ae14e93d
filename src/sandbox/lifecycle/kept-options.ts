import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../contracts/errors.js";
import type { BackendName, SandboxOptions } from "../../../contracts/sandbox.js";
import type { SandboxRecord, SandboxRules } from "../../ledger.js";

/** What becomes of an option when a kept sandbox is opened again. */
export type OnReopen = "made" | "restored" | "fixed" | "call";

/**
 * What becomes of each option when a kept sandbox is opened again. An option that is added has to be put here.
 *
 * - `made`: it made the sandbox and cannot be given again.
 * - `restored`: it is as it was unless the call says otherwise.
 * - `fixed`: it is as it was; a call that says otherwise is refused.
 * - `call`: each call says it anew. Nothing that restricts a sandbox may be among these.
 *
 * The options of a backend are not here: the backend remembers what restricts, or refuses.
 */
export const ON_REOPEN: Readonly<Record<Exclude<keyof Required<SandboxOptions>, BackendName>, OnReopen>> = {
  repo: "made",
  branch: "made",
  baseDir: "made",
  workspace: "made",
  image: "made",
  gitFilters: "made",
  gitAlternates: "made",
  id: "call",
  keep: "call",
  env: "call",
  signal: "call",
  onEvent: "call",
  githubToken: "call",
  runTimeout: "call",
  operationTimeout: "restored",
  maxOutput: "restored",
  allow: "restored",
  mounts: "restored",
  network: "fixed",
  limits: "fixed",
  isolation: "fixed",
};

const RESTORED = ["operationTimeout", "maxOutput", "allow", "mounts"] as const;
const FIXED = ["network", "limits", "isolation"] as const;

/** What restricts a sandbox with these options. None of it is a secret. */
export function rulesOf(opts: SandboxOptions): SandboxRules {
  const { network = "none", limits = {}, isolation = "required" } = opts;
  const options = Object.fromEntries(
    RESTORED.flatMap((name) => (opts[name] === undefined ? [] : [[name, opts[name]]])),
  );
  return { network, limits, isolation, options };
}

/** What restricts a kept sandbox. Version 0.1 had it in what its backends wrote. */
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
 * The options of a call that opens a kept sandbox again, with those that its record remembers. A call that wants another
 * network, other limits or another isolation than the sandbox was made with is refused, because it would not get them.
 */
export function reopenOptions(opts: SandboxOptions, rules: SandboxRules): SandboxOptions {
  for (const name of FIXED) {
    if (opts[name] === undefined || isDeepStrictEqual(opts[name], rules[name])) continue;
    throw new SandboxError(
      "invalid_argument",
      `Option ${name} (${JSON.stringify(opts[name])}) does not go together with id: the sandbox was made with ${JSON.stringify(rules[name])}`,
      { hint: `leave ${name} out, or make another sandbox` },
    );
  }
  const { network, limits, isolation, options } = rules;
  return { ...options, ...opts, network, limits, isolation };
}
