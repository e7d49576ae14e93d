export { type Fault, findFaults, type Place } from "./schema/find-faults.js";
export type { Schema } from "./schema/schema-type.js";
