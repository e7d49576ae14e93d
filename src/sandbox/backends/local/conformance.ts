import type { Backend } from "../../../../contracts/backend.js";

/** What the conformance kit needs to know about the local backend. */
export const conformance: NonNullable<Backend["conformance"]> = {
  directoryOf: ({ hostDir }) => hostDir,
  sharesNetwork: true,
};
