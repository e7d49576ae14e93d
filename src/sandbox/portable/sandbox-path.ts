import { posix } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { assertPathConfined } from "../../util/path.js";
import * as is from "../../util/schema.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";

/** Turns a caller's path into an absolute one that is lexically inside `workDir`, or anywhere in the sandbox. The driver confines links. */
export function resolveInside(state: OpenSandboxState, path: unknown, name: string): string {
  is.check(path, is.path, name);
  if (state.paths === "sandbox") return posix.resolve(state.cwd, path);
  const { workDir } = state.driver;
  try {
    return assertPathConfined(state.cwd === workDir ? path : posix.resolve(state.cwd, path), workDir);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new SandboxError("path_confinement", message, {
      cause,
      hint: `${name} must stay inside ${workDir}${otherPaths(state)}`,
    });
  }
}

/** Adds how to reach other paths to an error about one that leads outside. */
export function withPathHint(state: OpenSandboxState, error: SandboxError): SandboxError {
  if (error.code !== "path_confinement" || error.hint !== undefined) return error;
  const { code, message, cause } = error;
  return new SandboxError(code, message, {
    cause,
    hint: `it leads outside ${state.driver.workDir}${otherPaths(state)}`,
  });
}

function otherPaths({ driver, paths }: OpenSandboxState): string {
  const canReach = paths === "workdir" && driver.capabilities.paths?.includes("sandbox") === true;
  return canReach ? '; open the sandbox with paths: "sandbox" (--paths sandbox) to use any path that commands can' : "";
}
