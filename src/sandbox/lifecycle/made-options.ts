import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import type { SandboxRecord } from "../../ledger.js";
import { parseSourceUrl } from "../git.js";

/** The options that make a sandbox, and mean nothing once it is made. */
export const CREATING = [
  "repo",
  "branch",
  "baseDir",
  "workspace",
  "workDir",
  "image",
  "snapshot",
  "ttl",
  "gitFilters",
  "gitAlternates",
] as const;

/** A digest of each option that makes a sandbox. Not the options themselves: a URL may have a password in it. */
export function madeOf(opts: SandboxOptions): Record<string, string> {
  const given = CREATING.flatMap((name) => (opts[name] === undefined ? [] : [[name, digest(resolved(name, opts))]]));
  return Object.fromEntries(given) as Record<string, string>;
}

/** Throws `conflict` if a call that would make this sandbox gives other options than it was made with. */
export function assertMadeSo({ id, name = id, made = {} }: SandboxRecord, opts: SandboxOptions): void {
  for (const [option, asked] of Object.entries(madeOf(opts))) {
    if (made[option] === asked) continue;
    const value = option === "repo" ? "" : ` (${JSON.stringify(opts[option as (typeof CREATING)[number]])})`;
    throw new SandboxError(
      "conflict",
      `Sandbox "${name}" was made with ${otherThan(option)} than this call gives${value}`,
      {
        retryable: false,
        hint: `omit ${option}, choose another name, or remove the sandbox (glovebox rm ${name})`,
      },
    );
  }
}

/** "another network", "other labels". */
export function otherThan(option: string): string {
  return `${option.endsWith("s") ? "other" : "another"} ${option}`;
}

/** The same place is the same option, wherever the call was made. */
function resolved(name: (typeof CREATING)[number], opts: SandboxOptions): unknown {
  if (name === "baseDir" || name === "workDir") return resolve(opts[name] ?? "");
  if (name === "repo" && parseSourceUrl(opts.repo ?? "") === undefined) return resolve(opts.repo ?? "");
  return opts[name];
}

function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 32);
}
