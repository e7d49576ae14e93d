export { createDockerSandbox } from "./backends/docker.js";
export type { DockerOptions, Sandbox, SandboxOptions } from "./types.js";
