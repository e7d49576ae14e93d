import type { BuildStage } from "../../contracts/container-engine.js";
import type { ExecOptions, ExecResult, Limits } from "../../contracts/types.js";
import type { Sandbox } from "../sandbox/types.js";

export type { BuildStage } from "../../contracts/container-engine.js";

/** An image that is pulled when the engine does not have it. */
export interface PullImageSpec {
  type: "pull";
  tag: string;
}

/** An image that is built from a Dockerfile, again whenever its content, Dockerfile or arguments have changed. */
export interface BuildImageSpec extends Omit<BuildStage, "parentTag" | "cacheKey"> {
  type: "build";
}

/** A chain of images, built in the order of their parents, each one kept for others to stand on. */
export interface MultiStageBuildImageSpec {
  type: "multi-stage";
  stages: readonly BuildStage[];
  /** The stage that the container runs. */
  finalTag: string;
}

export type ImageSpec = PullImageSpec | BuildImageSpec | MultiStageBuildImageSpec;

/** When a container counts as ready: once everything that is named here holds. */
export interface WaitFor {
  /** A TCP port that something in the container listens on. */
  port?: number;
  /** A text that the command has written, to either output. */
  log?: string;
  /** A command that ends with 0; a string is run by `/bin/sh`. */
  command?: string | readonly string[];
  /** The image's own HEALTHCHECK. */
  health?: true;
  /** Milliseconds. Default 60 000. */
  timeout?: number;
}

/** How a container is made. */
export interface ContainerSpec {
  imageSpec: ImageSpec;
  /** Name that the other containers of the task reach it by. Default: the name of the container. */
  hostname?: string;
  environment?: Readonly<Record<string, string>>;
  /**
   * What the container runs beside what it is asked to; a string is run by `/bin/sh`. Default: nothing in the agent's
   * container, the image's own command in a service.
   */
  command?: string | readonly string[];
  /** User of every command. Default: the image's. */
  user?: string;
  limits?: Omit<Limits, "disk">;
  waitFor?: WaitFor;
}

/** A container of a task and its name in it. */
export interface ContainerSetup {
  name: string;
  spec: ContainerSpec;
}

/** The network of a task. */
export interface NetworkConfig {
  name: string;
  /** Whether nothing but the task's own containers can be reached. Default: unless the manager has `networkEnabled`. */
  internal?: boolean;
}

/** A task: the container that the agent works in, and the services that it needs. */
export interface TaskSetup {
  taskId: string;
  agentContainer: ContainerSetup;
  /** By a name of the caller's. */
  serviceContainers?: Readonly<Record<string, ContainerSetup>>;
  networkConfig?: NetworkConfig;
}

/** What tells one task, or one clone of it, from all others. */
export interface SandboxState {
  readonly taskId: string;
  readonly agentContainerId: string;
  /** Container ids by the names that the setup gave. */
  readonly serviceContainers: Readonly<Record<string, string>>;
  /** The same for a task and its clones. */
  readonly executionId: string;
  /** Absent: the task has no network. */
  readonly networkId?: string;
}

/** What a container's own command does. */
export interface CommandStatus {
  /** False as well when there is no command. */
  running: boolean;
  /** Present once it has ended. */
  exitCode?: number;
  /** What it wrote to both outputs, as it came; the middle is left out when it is long. */
  logs: string;
}

/** A task that runs. Disposing it takes it down. */
export interface Task extends AsyncDisposable {
  readonly taskId: string;
  readonly state: SandboxState;
  /** The container that the agent works in. */
  readonly agent: Sandbox;
  /** The services, by the names that the setup gave. */
  readonly services: Readonly<Record<string, Sandbox>>;
  /** What the own command of a service does, or of the agent's container when no name is given. */
  status(service?: string): CommandStatus;
  /** Removes containers, network and clones. Idempotent, never throws: what is left is told by an event, and tried again by the next call. */
  teardown(): Promise<void>;
}

/** Images that are ready, and the tasks that use them. Disposing it takes down every task. */
export interface Batch extends AsyncDisposable {
  readonly batchId: string;
  setupTask(setup: TaskSetup, opts?: SetupOptions): Promise<Task>;
  /** Idempotent, never throws: what is left is told by an event, and tried again by the next call. */
  teardown(): Promise<void>;
}

/** How a set-up runs. */
export interface SetupOptions {
  /** Abort leaves nothing behind and rejects with `aborted`. */
  signal?: AbortSignal;
}

/** What `manager.exec` takes beside the command. */
export interface TaskExecOptions
  extends Pick<
    ExecOptions,
    "stdin" | "cwd" | "env" | "user" | "timeout" | "signal" | "maxOutput" | "raw" | "onStdout" | "onStderr"
  > {
  /** The shell for a string, `/bin/sh` by default; an array goes through it only when this is given. */
  shellPath?: string;
}

/** Prepares images for many tasks, and runs the tasks. Every call may be made at any time by any number of callers. */
export interface SandboxManager {
  /** Pulls and builds every image of these tasks. */
  setupBatch(tasks: readonly TaskSetup[], opts?: SetupOptions): Promise<Batch>;
  /** As `batch.setupTask`, for the one batch that is open. */
  setupTask(setup: TaskSetup, opts?: SetupOptions): Promise<Task>;
  /** Runs a command in a container of an open batch. */
  exec(containerId: string, cmd: string | readonly string[], opts?: TaskExecOptions): Promise<ExecResult>;
  /** Copies all containers of a task at one moment, with a network of their own. */
  cloneSandboxState(state: SandboxState, opts?: SetupOptions): Promise<Task>;
}

/** Something that a user may want to see happen to a batch or a task. Secrets are redacted. */
export interface TaskEvent {
  type:
    | "image-pull"
    | "image-build"
    | "image-ready"
    | "task-ready"
    | "task-cloned"
    | "task-down"
    | "command-exit"
    | "warning"
    | "leak";
  message: string;
  batchId: string;
  taskId?: string;
  /** Name of the container in its task. */
  container?: string;
  image?: string;
  /** Bytes of a pull, or steps of a build. */
  progress?: { current: number; total: number };
  /** ISO 8601. */
  time: string;
}

/** How a manager runs batches and tasks, whatever engine serves it. */
export interface ManagerSettings {
  /** Whether tasks may reach other machines. Default false. */
  networkEnabled?: boolean;
  /** First part of the names of everything that is created. Default `workbench`. */
  batchIdPrefix?: string;
  /** How many containers start at the same time. Default: four per core. */
  concurrency?: number;
  /** Refuse images that are missing or out of date instead of pulling and building them. Default false. */
  verifyOnly?: boolean;
  onEvent?(event: TaskEvent): void;
}
