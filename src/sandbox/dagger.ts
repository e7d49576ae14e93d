export * from "./backends/dagger.js";
