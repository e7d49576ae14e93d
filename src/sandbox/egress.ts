import type { openEgress as Open } from "./egress/open-egress.js";

export { firstBeyond, parseAllow } from "./egress/policy.js";

/** Opens a proxy in a sandbox without network, for these names and nothing else. Its code is loaded by the first call. */
export const openEgress: typeof Open = async (...args) =>
  await (await import("./egress/open-egress.js")).openEgress(...args);
