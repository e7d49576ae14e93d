export { LiveTrust, type TrustPlace } from "./authority/live-trust.js";
export { type Authority, makeAuthority } from "./authority/make-authority.js";
export { makeTrust, type Trust, type TrustPaths, trustEnv } from "./authority/trust.js";
