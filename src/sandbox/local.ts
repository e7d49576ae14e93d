export * from "./backends/local.js";
