import type { Backend } from "../../../../contracts/backend.js";

/** What the conformance kit needs to know about the Dagger backend. */
export const conformance: NonNullable<Backend["conformance"]> = {
  skips: {
    "ports.url": "only a service has a port that is reached from outside, and the kit starts a plain process",
  },
};
