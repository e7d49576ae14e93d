import { isAbsolute } from "node:path";
import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import type { PolicyFile } from "./policy-schema.js";
import { type FoundFile, findSettingsFile } from "./settings-file.js";

/** The policy of the whole machine. */
export const MACHINE_POLICY = "/etc/glovebox/policy.yaml";

/** A policy that is in force, and the file that it comes from. */
export interface Policy {
  readonly path: string;
  readonly rules: PolicyFile;
}

/** Where policies are looked for. Only tests name another place than the machine's. */
export interface PolicyPlaces {
  readonly machine?: string;
  /** A further policy, applied in addition. Default: what GLOVEBOX_POLICY names. */
  readonly extra?: string | undefined;
}

/**
 * The policies in force: that of the machine and, in addition, the one that GLOVEBOX_POLICY names, so that the variable can only tighten. A
 * policy that can't be read is `permission_denied`: it would be no policy if damaging its file were enough to get rid of it.
 */
export async function policiesInForce({
  machine = MACHINE_POLICY,
  extra = process.env["GLOVEBOX_POLICY"] || undefined,
}: PolicyPlaces = {}): Promise<readonly Policy[]> {
  // On Windows anyone may create /etc, and files have no owner that could be checked.
  const ofMachine = process.platform === "win32" ? undefined : await load(machine, false);
  const named = extra === undefined ? undefined : await load(extra, true);
  return [ofMachine, named].filter((policy) => policy !== undefined);
}

async function load(path: string, isExtra: boolean): Promise<Policy | undefined> {
  try {
    if (isExtra && !isAbsolute(path)) throw new SandboxError("invalid_argument", "GLOVEBOX_POLICY is not absolute");
    const found: FoundFile | undefined = findSettingsFile(path);
    if (found === undefined) {
      if (!isExtra) return undefined;
      throw new SandboxError("not_found", "GLOVEBOX_POLICY names a file that does not exist");
    }
    const [{ loadSettings }, { POLICY_SCHEMA }] = await Promise.all([
      import("./parse-settings.js"),
      import("./policy-schema.js"),
    ]);
    return { path, rules: await loadSettings(found, POLICY_SCHEMA, isExtra) };
  } catch (error) {
    const { message, hint } = toSandboxError(error);
    throw new SandboxError("permission_denied", `The policy ${path} can't be used, so nothing is allowed: ${message}`, {
      cause: error,
      hint: hint ?? "correct the file, or ask the administrator of this machine",
    });
  }
}
