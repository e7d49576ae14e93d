declare global {
  interface GloveboxBackendOptions {
    docker?: DockerOptions;
  }
}

/** What only the Docker backend knows. */
export interface DockerOptions {
  /** The engine, as DOCKER_HOST names it. Default: DOCKER_HOST, then the Docker context, then the engine of this machine. */
  host?: string;
  /** The name of a Docker context. */
  context?: string;
  /** A folder with `ca.pem`, `cert.pem` and `key.pem`, for an engine that speaks TLS. */
  certPath?: string;
  /** Absolute path of the work directory; made when absent. Default `/workspace`. */
  workDir?: string;
  /** User of every command: `name`, `uid` or either with `:group`. Default: the image's. */
  user?: string;
  /** What the container calls itself. */
  hostname?: string;
  /** Whether an image that the engine does not have is pulled. Default `missing`. */
  pull?: "missing" | "never";
  /** How the guest gets into the container. Default: `bind` for an engine of this machine, `volume` for a remote one. */
  guest?: "bind" | "volume";
  /** What weakens the isolation of a container. Each one has to be named. */
  unsafe?: {
    /** Take `mounts`: paths of the engine's machine become visible. */
    mounts?: boolean;
    /** Everything that the machine can do, the container can. */
    privileged?: boolean;
    /** The engine's socket inside: whoever has it has the machine. */
    dockerSocket?: boolean;
    hostNetwork?: boolean;
    hostPid?: boolean;
    hostIpc?: boolean;
    /** Paths of devices. */
    devices?: readonly string[];
    /** Commands keep these capabilities, named as Docker does, for example `NET_ADMIN`. */
    capabilities?: readonly string[];
  };
}
