declare const docker: Backend;

export { DockerOptions, createDockerSandbox, docker };
