import type { Backend } from "../../../../contracts/backend.js";

/** What the conformance kit needs to know about the Daytona backend. */
export const conformance: NonNullable<Backend["conformance"]> = {
  hasHttpPorts: true,
  skips: {
    "network.default":
      "the network of a sandbox at the service is open unless asked: accounts of a lower tier cannot close it, and it is not the network of this machine",
  },
};
