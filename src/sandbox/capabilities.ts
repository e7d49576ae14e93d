import { SandboxError } from "../../contracts/errors.js";
import type { Capabilities, LackingCapability, Limits } from "../../contracts/types.js";
import { needsNetworkRules } from "./egress.js";
import type { SandboxOptions } from "./types.js";

/** What a call may ask for that not every backend can enforce. */
export interface CapabilityRequest
  extends Pick<SandboxOptions, "network" | "limits" | "isolation" | "workDir" | "publish" | "paths" | "secrets"> {
  pty?: unknown;
  user?: string | undefined;
  ports?: unknown;
  output?: "separate" | "combined" | undefined;
}

/** Throws `unsupported` for what a backend can't enforce, naming what was asked for, why not, and what it can enforce. */
export function assertCapabilities(opts: CapabilityRequest, capabilities: Capabilities, backend: string): void {
  const unsupported = (what: string, name: LackingCapability, enforced?: readonly string[]): SandboxError =>
    new SandboxError("unsupported", `The ${backend} backend can't enforce ${what}${reasonFor(name, capabilities)}`, {
      backend,
      hint: enforced && `it can enforce here: ${enforced.length === 0 ? "none of them" : enforced.join(", ")}`,
    });
  if (opts.isolation === "required" && capabilities.isolation === "none") {
    throw new SandboxError("no_isolation", `The ${backend} backend can't isolate commands here`, {
      backend,
      hint: 'set isolation: "none" to run commands without isolation',
    });
  }
  if (opts.network !== undefined) {
    const kind = typeof opts.network === "string" ? opts.network : "allow";
    if (!capabilities.network.includes(kind)) {
      const what = kind === "allow" ? "{ allow }" : `"${kind}"`;
      throw unsupported(`network ${what}`, `network.${kind}`, capabilities.network);
    }
  }
  const rules = opts.network === undefined ? undefined : needsNetworkRules(opts.network);
  if (rules !== undefined && capabilities.networkRules !== true) {
    const why = reasonFor("networkRules", capabilities);
    throw new SandboxError("unsupported", `The ${backend} backend can't enforce ${rules}${why}`, {
      backend,
      hint: "use the local or docker backend, or allow whole hosts by name",
    });
  }
  for (const [name, value] of Object.entries(opts.limits ?? {}) as [keyof Limits, number | undefined][]) {
    if (value !== undefined && !capabilities.limits.includes(name)) {
      throw unsupported(`limits.${name} (${value})`, `limits.${name}`, capabilities.limits);
    }
  }
  if (opts.workDir !== undefined && capabilities.workDir !== true) {
    const why = reasonFor("workDir", capabilities);
    throw new SandboxError("unsupported", `The ${backend} backend can't enforce workDir ("${opts.workDir}")${why}`, {
      backend,
      hint: "leave workDir out: the sandbox works where its files are",
    });
  }
  if (opts.paths === "sandbox" && capabilities.paths?.includes("sandbox") !== true) {
    const why = reasonFor("paths", capabilities);
    throw new SandboxError("unsupported", `The ${backend} backend can't enforce paths ("${opts.paths}") here${why}`, {
      backend,
      hint: "leave paths out: file calls reach the work directory only",
    });
  }
  const [secret] = Object.keys(opts.secrets ?? {});
  if (secret !== undefined && capabilities.secrets !== true) {
    const why = reasonFor("secrets", capabilities);
    throw new SandboxError("unsupported", `The ${backend} backend can't keep secret ${secret} outside${why}`, {
      backend,
      hint: "use the local or the docker backend, or give the value itself to commands by env",
    });
  }
  if (opts.pty !== undefined && !capabilities.pty) throw unsupported("pty", "pty");
  if (opts.user !== undefined && !capabilities.user) throw unsupported(`user ("${opts.user}")`, "user");
  if (opts.output === "combined" && capabilities.combinedOutput !== true) {
    throw unsupported('output: "combined"', "combinedOutput");
  }
  const published = opts.publish !== undefined && opts.publish.length > 0;
  if ((opts.ports !== undefined || published) && !capabilities.ports) throw unsupported("ports", "ports");
}

/** Why a sandbox can't push: the reason of every backend. */
export const NO_REPOSITORY = "the sandbox was opened without a repository";

/** The end of a sentence that says what can't be had: the backend's reason, if it gives one. */
export function reasonFor(name: LackingCapability, { reasons = {} }: Pick<Capabilities, "reasons">): string {
  const reason = reasons[name];
  return reason === undefined ? "" : `: ${reason}`;
}
