import { SandboxError } from "./errors.js";
import type { Finding } from "./finding.js";
import type { Sandbox, SandboxOptions } from "./types.js";

/** Opens a sandbox on Daytona. */
export async function createDaytonaSandbox(_opts: SandboxOptions): Promise<Sandbox> {
  throw new SandboxError("unsupported", "Daytona sandbox not yet implemented", {
    backend: "daytona",
    operation: "open",
  });
}

/** Looks at what the backend needs on this machine. */
export async function probe(): Promise<Finding[]> {
  const fix = 'use the backend "local"';
  return [{ name: "backend", status: "missing", detail: 'The backend "daytona" is not yet implemented', fix }];
}

export { createDaytonaSandbox as open };
