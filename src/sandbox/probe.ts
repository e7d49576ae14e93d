import type { Backend, ProbeOptions } from "../../contracts/backend.js";
import type { Finding } from "../../contracts/finding.js";
import type { SandboxOptions } from "../../contracts/sandbox.js";
import type { Capabilities } from "../../contracts/types.js";
import { checkPossible } from "./lifecycle.js";
import { loadBackend } from "./registry.js";

/** Probes a backend on this machine. If it can't be loaded, that is the only finding. */
export async function probeBackend(name: string, how: ProbeOptions = {}): Promise<Finding[]> {
  let backend: Backend;
  try {
    backend = await loadBackend(name);
  } catch (error) {
    const { message, hint } = error as { message: string; hint?: string };
    return [{ name: "backend", status: "missing", detail: message, ...(hint !== undefined && { fix: hint }) }];
  }
  return (await backend.probe?.(how)) ?? [];
}

/** What the conformance kit needs to know about a backend. */
export async function conformanceOf(name: string): Promise<NonNullable<Backend["conformance"]>> {
  return (await loadBackend(name)).conformance ?? {};
}

/** What a backend enforces here; undefined if it can't be loaded or does not say. */
export async function capabilitiesOf(name: string): Promise<Capabilities | undefined> {
  try {
    return (await loadBackend(name)).capabilities();
  } catch {
    return undefined;
  }
}

/** Sets of environment variables with credentials of a backend; one complete set is enough. */
export async function credentialsOf(name: string): Promise<readonly (readonly string[])[]> {
  return (await loadBackend(name).catch(() => undefined))?.credentials ?? [];
}

/** Throws for an unknown backend, or for options that it can never enforce, as `openSandbox` would. */
export async function assertBackend(name: string, opts: SandboxOptions): Promise<void> {
  checkPossible(await loadBackend(name), opts);
}
