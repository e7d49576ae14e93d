import { posix } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { assertPathConfined } from "../../util/path.js";
import * as is from "../../util/schema.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";

/** Turns a caller's path into an absolute one that is lexically inside `workDir`. The driver confines links. */
export function resolveInside(state: OpenSandboxState, path: unknown, name: string): string {
  is.check(path, is.path, name);
  const { workDir } = state.driver;
  try {
    return assertPathConfined(state.cwd === workDir ? path : posix.resolve(state.cwd, path), workDir);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new SandboxError("path_confinement", message, { cause, hint: `${name} must stay inside ${workDir}` });
  }
}
