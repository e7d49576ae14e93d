export { openEgress } from "./egress/open-egress.js";
export { firstBeyond, parseAllow } from "./egress/policy.js";
