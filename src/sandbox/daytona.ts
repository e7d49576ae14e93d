export type * from "./backends/daytona/daytona-options.js";
export * from "./backends/daytona.js";
