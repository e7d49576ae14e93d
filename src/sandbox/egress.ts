export { openEgress } from "./egress/open-egress.js";
export { parseAllow } from "./egress/policy.js";
