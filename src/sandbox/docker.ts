export * from "./backends/docker.js";
