import type { Backend } from "../../../../contracts/backend.js";

/** What the conformance kit needs to know about the Dagger backend. */
export const conformance: NonNullable<Backend["conformance"]> = {};
