import type { BackendModule } from "../../registry.js";

/** What the conformance kit is to know about the local backend. */
export const conformance: NonNullable<BackendModule["conformance"]> = {
  directoryOf: ({ workDir }) => workDir,
  sharesNetwork: true,
};
