import { SandboxError } from "../../contracts/errors.js";
import type { Capabilities } from "../../contracts/types.js";
import type { SandboxOptions } from "./types.js";

/** What a call may ask for that not every backend can enforce. */
export interface CapabilityRequest
  extends Pick<SandboxOptions, "network" | "limits" | "isolation" | "workDir" | "publish" | "paths"> {
  pty?: unknown;
  user?: string | undefined;
  ports?: unknown;
  output?: "separate" | "combined" | undefined;
}

/** Throws `unsupported` for what a backend can't enforce, naming what was asked for and what it can enforce. */
export function assertCapabilities(opts: CapabilityRequest, capabilities: Capabilities, backend: string): void {
  if (opts.isolation === "required" && capabilities.isolation === "none") {
    throw new SandboxError("no_isolation", `The ${backend} backend can't isolate commands here`, {
      backend,
      hint: 'set isolation: "none" to run commands without isolation',
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
  if (opts.workDir !== undefined && capabilities.workDir !== true) {
    throw new SandboxError("unsupported", `The ${backend} backend can't enforce workDir ("${opts.workDir}")`, {
      backend,
      hint: "leave workDir out: the sandbox has no file system of its own here, and works where its files are",
    });
  }
  if (opts.paths === "sandbox" && capabilities.paths?.includes("sandbox") !== true) {
    throw new SandboxError("unsupported", `The ${backend} backend can't enforce paths ("${opts.paths}") here`, {
      backend,
      hint:
        capabilities.isolation === "none"
          ? "leave paths out: without isolation, commands can reach every path of this machine, and file calls must not"
          : "leave paths out: file calls reach the work directory only",
    });
  }
  if (opts.pty !== undefined && !capabilities.pty) throw unsupported("pty", undefined, backend);
  if (opts.user !== undefined && !capabilities.user) throw unsupported(`user ("${opts.user}")`, undefined, backend);
  if (opts.output === "combined" && capabilities.combinedOutput !== true) {
    throw unsupported('output: "combined"', undefined, backend);
  }
  const published = opts.publish !== undefined && opts.publish.length > 0;
  if ((opts.ports !== undefined || published) && !capabilities.ports) throw unsupported("ports", undefined, backend);
}

function unsupported(what: string, enforced: readonly string[] | undefined, backend: string): SandboxError {
  return new SandboxError("unsupported", `The ${backend} backend can't enforce ${what}`, {
    backend,
    hint:
      enforced === undefined
        ? undefined
        : `it can enforce here: ${enforced.length === 0 ? "none of them" : enforced.join(", ")}`,
  });
}
