export { hashedName } from "./authority/certificate.js";
export { LiveTrust, type TrustPlace } from "./authority/live-trust.js";
export { type Authority, makeAuthority } from "./authority/make-authority.js";
export { makeTrust, type Trust, trustEnv } from "./authority/trust.js";
export { type TrustPaths, trustPaths } from "./authority/trust-paths.js";
