export type * from "./backends/local/local-options.js";
export * from "./backends/local.js";
