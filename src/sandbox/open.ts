import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { invalidArgument } from "../util/checks.js";
import { openInTime } from "./open-in-time.js";
import { validateSandboxOptions } from "./options.js";
import { chooseBackend, loadBackend } from "./registry.js";
import type { Sandbox, SandboxOptions } from "./types.js";

/** Options of `openSandbox`. */
export interface OpenOptions extends SandboxOptions {
  /** Name of a backend, path of a module, or name of a package that is installed beside Glovebox. Default: as the environment says, else `local`. */
  backend?: string;
}

/** Opens a sandbox: checks the options, loads the backend and lets it create what is needed. */
export async function openSandbox(opts: OpenOptions = {}): Promise<Sandbox> {
  if (typeof opts !== "object" || opts === null) throw invalidArgument("options", "an object", opts);
  const { backend, ...rest } = opts;
  if (backend !== undefined && (typeof backend !== "string" || backend === "")) {
    throw invalidArgument("backend", "the name of a backend", backend);
  }
  validateSandboxOptions(rest);
  if (rest.signal?.aborted) throw new SandboxError("aborted", "The call was aborted", { cause: rest.signal.reason });
  const name = backend ?? chooseBackend(process.env);
  try {
    const module = await loadBackend(name);
    return await openInTime(name, rest, (inTime) => module.open(inTime));
  } catch (error) {
    throw toSandboxError(error, { backend: name, operation: "open" });
  }
}
