/** The nouns of the harness. Times are milliseconds and sizes are bytes unless a name says otherwise. */
export type * from "./agent-types.js";
export type * from "./blueprint-spec.js";
export type * from "./blueprint-types.js";
export type * from "./context-types.js";
export type * from "./event-types.js";
export { EXIT_CODES } from "./exit-codes.js";
export type * from "./report-types.js";
export type * from "./run-types.js";
