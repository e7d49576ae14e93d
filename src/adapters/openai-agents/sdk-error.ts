import { SandboxError } from "../../../contracts/errors.js";
import { sandboxes } from "./load-agents.js";

/** Runs the work and rethrows what failed as the error that the Agents SDK has for it. */
export async function withSdkErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toSdkError(error);
  }
}

/** What the SDK says for a failure of a sandbox: it decides by the class whether the model may go on. */
export function toSdkError(error: unknown): unknown {
  if (!(error instanceof SandboxError)) return error;
  const { code, hint, backend, retryable } = error;
  const message = hint === undefined ? error.message : `${error.message}. ${hint}`;
  const details = { provider: "glovebox", backend, errorCode: code, retryable, cause: error };
  switch (code) {
    case "unsupported":
    case "no_isolation":
      return new sandboxes.SandboxUnsupportedFeatureError(message, details);
    case "path_confinement":
      return new sandboxes.SandboxPathResolutionError(`Sandbox path escapes the workspace root. ${message}`, details);
    case "invalid_path":
      return new sandboxes.SandboxPathResolutionError(message, details);
    case "not_found":
      return new sandboxes.SandboxWorkspaceReadNotFoundError(message, details);
    case "invalid_argument":
    case "missing_dependency":
    case "unauthenticated":
    case "command_not_allowed":
      return new sandboxes.SandboxConfigurationError(message, details);
    default:
      return new sandboxes.SandboxProviderError(message, details);
  }
}

/** The SDK's error for what this adapter can't do. */
export function unsupported(feature: string, message: string, details: Record<string, unknown> = {}): Error {
  return new sandboxes.SandboxUnsupportedFeatureError(`GloveboxSandboxClient does not support ${message}.`, {
    provider: "glovebox",
    feature,
    ...details,
  });
}
