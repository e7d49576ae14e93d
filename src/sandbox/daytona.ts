export * from "./backends/daytona.js";
