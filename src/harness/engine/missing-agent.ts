import { SandboxError } from "../../../contracts/errors.js";
import type { AgentDriver } from "../types.js";

/** The error of an agent that cannot be used in the sandbox, with the ways to bring it there. */
export function missingAgent(driver: AgentDriver, reason?: string): SandboxError {
  const program = driver.versionArgv?.[0] ?? driver.name;
  const why = reason ?? `The agent ${driver.name} is not in the sandbox: there is no program ${program}`;
  return new SandboxError("missing_dependency", why, {
    hint: `take an image that has it (sandbox.image), mount it (sandbox.mounts), or install it in sandbox.setup: ${driver.installHint}`,
  });
}
