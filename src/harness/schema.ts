/** How documents are checked, and the parts that schemas of ours are made of. */
export { type Fault, type FieldPath, findFaults } from "../util/schema.js";
export * as fields from "./schema/fields.js";
export { type ReportFault, slugOf, toLimits, toMs } from "./schema/values.js";
export type { Written } from "./schema/written.js";
