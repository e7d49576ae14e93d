import { accessSync, constants } from "node:fs";
import { SandboxError } from "../../../contracts/errors.js";
import { installLine } from "../../machine/install-line.js";

let found: string | undefined;

/** The path of bubblewrap. Only in system directories: one in PATH could belong to a sandbox. */
export function findBwrap(): string {
  found ??= ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"].find(
    isExecutable,
  );
  if (found !== undefined) return found;
  throw new SandboxError(
    "no_isolation",
    "bubblewrap is not installed, and without it a local sandbox is not confined",
    {
      hint: `${installLine("bubblewrap")}; or use the docker backend`,
    },
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
