import type { BackendModule } from "../registry.js";

/** What the conformance kit is to know about the Dagger backend. */
export const conformance: NonNullable<BackendModule["conformance"]> = {
  skips: {},
};
