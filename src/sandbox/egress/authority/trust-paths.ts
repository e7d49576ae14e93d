import { posix } from "node:path";

/** Where programs in a sandbox find what they need to trust an authority. */
export interface TrustPaths {
  /** Its certificate alone. */
  authority: string;
  /** Its certificate and those that the sandbox trusts anyway. */
  bundle: string;
  /** The same, for Java. */
  java: string;
}

/** The names of these files. */
export const TRUST_NAMES: TrustPaths = { authority: "authority.pem", bundle: "bundle.pem", java: "authorities.jks" };

/** The paths of the files in a folder of the sandbox. */
export function trustPaths(folder: string): TrustPaths {
  return {
    authority: posix.join(folder, TRUST_NAMES.authority),
    bundle: posix.join(folder, TRUST_NAMES.bundle),
    java: posix.join(folder, TRUST_NAMES.java),
  };
}
