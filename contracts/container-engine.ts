import type { DriverProcess } from "./driver.js";
import type { Sandbox } from "./sandbox.js";
import type { Limits } from "./types.js";

/**
 * What batches and tasks need from a container engine. Every call may be made at any time by any number of callers. A
 * failure is a `SandboxError`: `unavailable` when nothing answers, `permission_denied` when this user may not use the
 * engine. The engine labels everything it creates with its owner, so that `sweep` recognizes what a dead process left.
 */
export interface ContainerEngine {
  /** Named in errors as their backend. */
  readonly name: string;
  /** Pulls an image that is missing; builds one that is missing or out of date. Never called twice at once for one tag. */
  ensureImage(request: ImageRequest, opts: ImageOptions): Promise<EngineImage>;
  /**
   * Throws `unsupported` for what the engine can't keep, before anything of a task is created. Returns the names of the containers in the order in which
   * they have to start: those of one group at the same time, and the next group once they run. Absent: everything can be kept, and all start at once.
   */
  arrange?(
    containers: readonly PlannedContainer[],
    network?: ContainerRequest["network"],
  ): readonly (readonly string[])[];
  /** Creates a network and returns its id. Creates nothing after it has rejected. */
  createNetwork(request: NetworkRequest, signal: AbortSignal): Promise<string>;
  /** Creates a container, starts it and attaches to it. When it rejects, nothing is left or is still being created. */
  startContainer(request: ContainerRequest, signal: AbortSignal): Promise<EngineContainer>;
  /** Removes a container by its name, whatever runs in it. A container that doesn't exist is no error. */
  removeContainer(name: string): Promise<void>;
  /** Removes a network by its name or id. A network that doesn't exist is no error. */
  removeNetwork(name: string): Promise<void>;
  /** Removes an image by its name. An image that doesn't exist, or that a container still uses, is no error. */
  removeImage(name: string): Promise<void>;
  /** Removes what dead processes left on the engine. Never touches what a live process owns. */
  sweep(): Promise<unknown>;
  /** Closes idle connections. Calls in progress continue. */
  close(): void;
}

/** A running container. The whole of it is one sandbox. It is gone when this process dies. */
export interface EngineContainer {
  /** The engine's id for it. */
  readonly id: string;
  readonly sandbox: Sandbox;
  /** Starts the command that the container runs by itself. */
  start(argv: readonly string[]): Promise<DriverProcess>;
  /** Saves the container's files as an image, without its volumes. */
  commit(image: string, labels: Readonly<Record<string, string>>): Promise<void>;
  /** Makes a directory an exact copy of the one in another container of this engine, with owners and modes. */
  copyFrom(origin: EngineContainer, path: string): Promise<void>;
  /** Runs `work` while every process in the container is stopped. */
  frozen<T>(work: () => Promise<T>): Promise<T>;
  /** Ends all processes and removes the container. Rejects when it is still there; calling it again tries again. */
  remove(): Promise<void>;
}

/** A container to start. */
export interface ContainerRequest {
  readonly name: string;
  /** Id of an `EngineImage`, or the name of a commit. */
  readonly image: string;
  readonly hostname: string;
  /** User of every command. Empty: root, or the image's user where `EngineImage.user` says nothing. */
  readonly user: string;
  /** Where commands start. Created when it doesn't exist. Empty: where the image says, if `EngineImage.workingDir` says nothing. */
  readonly workingDir: string;
  /** Environment of every command. Must not be visible on the engine: it may hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly limits: Omit<Limits, "disk">;
  readonly labels: Readonly<Record<string, string>>;
  /** The network, where others reach the container by its host name. Absent: the container has none. */
  readonly network?: Pick<NetworkRequest, "name" | "internal">;
  /** Whether its own command gets the privileges that services usually need. Other commands get none. */
  readonly isService: boolean;
  onWarning(message: string): void;
}

/** A container of a task that is about to be created. */
export interface PlannedContainer extends Omit<ContainerRequest, "labels" | "network" | "onWarning"> {
  /** Its own command. */
  readonly command: readonly string[] | undefined;
}

/** A network to create. */
export interface NetworkRequest {
  readonly name: string;
  /** Its containers reach each other only: not the host, and nothing beyond it. */
  readonly internal: boolean;
  /** How many containers will join it. */
  readonly members: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** One image to build. Also a stage of a multi-stage build. */
export interface BuildStage {
  tag: string;
  /** Directory with the Dockerfile and the files that it copies. A `.dockerignore` in it is respected. */
  contextPath: string;
  /** Relative to `contextPath`. Default `Dockerfile`. */
  dockerfilePath?: string;
  buildArgs?: Readonly<Record<string, string>>;
  /** The image that this one is built on, passed as the build argument `BASE_IMAGE`. */
  parentTag?: string;
  /** Another value builds the image again, even if nothing else has changed. */
  cacheKey?: string;
}

/** An image to pull, or to build when `build` is given. */
export interface ImageRequest {
  readonly tag: string;
  readonly build?: BuildStage;
  /** Id of the image named by `build.parentTag`. Another id makes the built image out of date. */
  readonly parentId?: string;
  /** Whether a container runs the image's own command, or waits for its HEALTHCHECK. An engine may have to ask elsewhere what they are. */
  readonly isRun: boolean;
}

/** How an image is prepared. */
export interface ImageOptions {
  /** Pull and build nothing: `not_found` when the image is missing, `conflict` when it is out of date. */
  readonly verifyOnly: boolean;
  readonly signal: AbortSignal;
  /** Reports a pull or a build. Not called for an image that is up to date. `progress` counts bytes or steps. */
  onProgress(message: string, progress?: { readonly current: number; readonly total: number }): void;
}

/** An image on the engine, with its defaults for containers. An engine that adds `env`, `workingDir` and `user` to a container by itself may leave them empty. */
export interface EngineImage {
  /** Stays the same as long as the content does. */
  readonly id: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly workingDir: string;
  /** Empty: root. */
  readonly user: string;
  /** Ready when this command exits with 0. `timeout` in milliseconds. */
  readonly healthcheck?: { readonly argv: readonly string[]; readonly timeout?: number };
  /** Directories that are volumes in every container. */
  readonly volumes: readonly string[];
}
