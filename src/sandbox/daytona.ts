import { SandboxError } from "./errors.js";
import type { Sandbox, SandboxOptions } from "./types.js";

/** Opens a sandbox on Daytona. */
export async function createDaytonaSandbox(_opts: SandboxOptions): Promise<Sandbox> {
  throw new SandboxError("unsupported", "Daytona sandbox not yet implemented", {
    backend: "daytona",
    operation: "open",
  });
}

export { createDaytonaSandbox as open };
