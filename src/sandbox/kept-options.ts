import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../contracts/errors.js";
import type { SandboxOptions } from "./types.js";

/** What becomes of an option when a kept sandbox is opened again. */
export type OnReopen = "made" | "restored" | "fixed" | "call" | "backend";

/**
 * What becomes of each option when a kept sandbox is opened again. An option that is added has to be put here.
 *
 * - `made`: it made the sandbox and cannot be given again.
 * - `restored`: it is as it was unless the call says otherwise.
 * - `fixed`: it is as it was; a call that says otherwise is refused.
 * - `call`: each call says it anew. Nothing that restricts a sandbox may be among these.
 * - `backend`: the backend remembers what restricts, or refuses.
 */
export const ON_REOPEN: Readonly<Record<keyof Required<SandboxOptions>, OnReopen>> = {
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
  daytona: "backend",
  docker: "backend",
  vercel: "backend",
  dagger: "backend",
};

type RestoredName = "operationTimeout" | "maxOutput" | "allow" | "mounts";
const RESTORED: readonly RestoredName[] = ["operationTimeout", "maxOutput", "allow", "mounts"];

/** What every backend writes into the record of a kept sandbox. None of it is a secret. */
export type KeptOptions = Pick<SandboxOptions, RestoredName>;

/** What restricts a sandbox and must not be lost when it is opened again. */
export function keptOptions(opts: SandboxOptions): KeptOptions {
  return Object.fromEntries(RESTORED.flatMap((name) => (opts[name] === undefined ? [] : [[name, opts[name]]])));
}

/**
 * The options of a call that opens a kept sandbox again, with those that the record remembers. `fixed` holds what the
 * sandbox was made with: a call that wants something else is refused, because it would not get it.
 */
export function reopenOptions(
  opts: SandboxOptions,
  kept: KeptOptions | undefined,
  fixed: Pick<SandboxOptions, "network" | "limits" | "isolation">,
): SandboxOptions {
  for (const name of ["network", "limits", "isolation"] as const) {
    if (opts[name] === undefined || isDeepStrictEqual(opts[name], fixed[name])) continue;
    throw new SandboxError(
      "invalid_argument",
      `Option ${name} (${JSON.stringify(opts[name])}) does not go together with id: the sandbox was made with ${JSON.stringify(fixed[name])}`,
      { hint: `leave ${name} out, or make another sandbox` },
    );
  }
  return { ...kept, ...opts };
}
