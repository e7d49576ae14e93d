import { SandboxError } from "../../contracts/errors.js";
import type { Capabilities } from "../../contracts/types.js";
import type { SandboxOptions } from "./types.js";

/** What a call may ask for that not every backend can keep. */
export interface CapabilityRequest extends Pick<SandboxOptions, "network" | "limits" | "isolation"> {
  pty?: unknown;
  user?: string | undefined;
  ports?: unknown;
}

/** Refuses what a backend cannot keep: `unsupported`, naming what was asked for and what there is. */
export function assertCapabilities(opts: CapabilityRequest, capabilities: Capabilities, backend: string): void {
  if (opts.isolation === "required" && capabilities.isolation === "none") {
    throw new SandboxError("no_isolation", `The ${backend} backend cannot isolate here`, {
      backend,
      hint: 'isolation: "none" runs without it',
    });
  }
  if (opts.network !== undefined) {
    const kind = typeof opts.network === "string" ? opts.network : "allow";
    if (!capabilities.network.includes(kind)) {
      throw unsupported(`network ${kind === "allow" ? "{ allow }" : `"${kind}"`}`, capabilities.network, backend);
    }
  }
  for (const [name, value] of Object.entries(opts.limits ?? {})) {
    if (value !== undefined && !(capabilities.limits as readonly string[]).includes(name)) {
      throw unsupported(`limits.${name} (${value})`, capabilities.limits, backend);
    }
  }
  if (opts.pty !== undefined && !capabilities.pty) throw unsupported("pty", undefined, backend);
  if (opts.user !== undefined && !capabilities.user) throw unsupported(`user ("${opts.user}")`, undefined, backend);
  if (opts.ports !== undefined && !capabilities.ports) throw unsupported("ports", undefined, backend);
}

function unsupported(what: string, kept: readonly string[] | undefined, backend: string): SandboxError {
  return new SandboxError("unsupported", `The ${backend} backend cannot keep ${what}`, {
    backend,
    hint: kept === undefined ? undefined : `it keeps here: ${kept.length === 0 ? "none of them" : kept.join(", ")}`,
  });
}
