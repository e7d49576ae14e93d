import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { isWithin } from "../machine/system-folders.js";
import { capabilitiesOf, chooseBackend, type OpenOptions } from "../sandbox.js";

const WORKSPACE = "/workspace";

/** The options of a new sandbox with a place for its work directory: the same short one on every backend that lets us choose. */
export async function withWorkDir(options: OpenOptions): Promise<OpenOptions> {
  const { backend = chooseBackend(process.env), workDir, baseDir, isolation, id, snapshot } = options;
  if ([workDir, baseDir, id, snapshot].some((value) => value !== undefined) || isolation === "none") return options;
  if (isInUse(options) || (await capabilitiesOf(backend))?.workDir !== true) return options;
  return { ...options, workDir: WORKSPACE };
}

/** Whether something of this machine is needed at that path inside: a mount, a store of git objects or a program. */
function isInUse({ mounts = [], gitAlternates = [] }: OpenOptions): boolean {
  const mounted = mounts.map(({ source, target = resolve(source) }) => target);
  const programs = (process.env["PATH"] ?? "").split(":").flatMap((path) => [path, realOf(path)]);
  return [...mounted, ...gitAlternates.map((path) => resolve(path)), ...programs].some((path) =>
    isWithin(path, WORKSPACE),
  );
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
