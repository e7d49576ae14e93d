export type * from "./backends/docker/docker-options.js";
export * from "./backends/docker.js";
