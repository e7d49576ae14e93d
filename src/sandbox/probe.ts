import type { Finding } from "../../contracts/finding.js";
import type { Capabilities } from "../../contracts/types.js";
import { type BackendModule, loadBackend } from "./registry.js";

/** What a backend says of this machine; a backend that cannot be loaded says only that. */
export async function probeBackend(name: string): Promise<Finding[]> {
  let module: BackendModule;
  try {
    module = await loadBackend(name);
  } catch (error) {
    const { message, hint } = error as { message: string; hint?: string };
    return [{ name: "backend", status: "missing", detail: message, ...(hint !== undefined && { fix: hint }) }];
  }
  return (await module.probe?.()) ?? [];
}

/** What the conformance kit is to know about a backend. */
export async function conformanceOf(name: string): Promise<NonNullable<BackendModule["conformance"]>> {
  return (await loadBackend(name)).conformance ?? {};
}

/** What a backend keeps here; undefined when it cannot be loaded or does not say. */
export async function capabilitiesOf(name: string): Promise<Capabilities | undefined> {
  try {
    return (await loadBackend(name)).capabilities?.();
  } catch {
    return undefined;
  }
}
