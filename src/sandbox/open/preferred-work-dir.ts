import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import { findSandboxId } from "../../ledger.js";
import { isWithin } from "../../machine/system-folders.js";
import { capabilitiesOf } from "../probe.js";
import { chooseBackend } from "../registry.js";

/** Where commands of a sandbox work if nobody says otherwise, for everything but the library's own calls. */
export const WORKSPACE = "/workspace";

/**
 * The options of a new sandbox with `place` as its work directory: the same short path on every backend that lets us choose. Unchanged if they
 * name another, if the sandbox uses the host's own paths, or if something of the host is needed at that path inside.
 */
export async function withPreferredWorkDir<T extends SandboxOptions & { backend?: string }>(
  options: T,
  place: string,
): Promise<T> {
  const { backend = chooseBackend(process.env), workDir, baseDir, isolation, id, name, ifExists, snapshot } = options;
  // One that exists works where it works.
  if (ifExists === "reopen" && name !== undefined && (await findSandboxId(name)) !== undefined) return options;
  if ([workDir, baseDir, id, snapshot].some((value) => value !== undefined) || isolation === "none") return options;
  if (isInUse(options, place) || (await capabilitiesOf(backend))?.workDir !== true) return options;
  return { ...options, workDir: place };
}

/** Whether something of this machine is needed at that path inside: a mount, a store of git objects or a program. */
function isInUse({ mounts = [], gitAlternates = [] }: SandboxOptions, place: string): boolean {
  const mounted = mounts.map(({ source, target = resolve(source) }) => target);
  const programs = (process.env["PATH"] ?? "").split(":").flatMap((path) => [path, realOf(path)]);
  return [...mounted, ...gitAlternates.map((path) => resolve(path)), ...programs].some((path) => isWithin(path, place));
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
