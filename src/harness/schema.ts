/** How documents are checked, and the parts that schemas of ours are made of. */
export * as fields from "./schema/fields.js";
export { type Fault, type FieldPath, findFaults } from "./schema/find-faults.js";
export type { Schema } from "./schema/schema-type.js";
export { type ReportFault, slugOf, toLimits, toMs } from "./schema/values.js";
