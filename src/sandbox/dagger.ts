export type * from "./backends/dagger/dagger-options.js";
export * from "./backends/dagger.js";
