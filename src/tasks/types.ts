import type { BuildStage } from "../../contracts/container-engine.js";
import type { ExecOptions, ExecResult, Limits } from "../../contracts/types.js";
import type { Sandbox } from "../sandbox/types.js";

export type { BuildStage } from "../../contracts/container-engine.js";

/** An image that is pulled when the engine doesn't have it. */
export interface PullImageSpec {
  type: "pull";
  tag: string;
}

/** An image that is built from a Dockerfile, again whenever its content, Dockerfile or arguments have changed. */
export interface BuildImageSpec extends Omit<BuildStage, "parentTag" | "cacheKey"> {
  type: "build";
}

/** A chain of images, parents first. Every stage stays on the engine, for other images to build on. */
export interface MultiStageBuildImageSpec {
  type: "multi-stage";
  stages: readonly BuildStage[];
  /** The stage that the container runs. */
  finalTag: string;
}

export type ImageSpec = PullImageSpec | BuildImageSpec | MultiStageBuildImageSpec;

/** When a container is ready: once all of these conditions are met. */
export interface WaitFor {
  /** A TCP port that something in the container listens on. */
  port?: number;
  /** A text in the output of its own command, stdout or stderr. */
  log?: string;
  /** A command that exits with 0; a string is run by `/bin/sh`. */
  command?: string | readonly string[];
  /** The image's own HEALTHCHECK. */
  health?: true;
  /** Milliseconds. Default 60 000. */
  timeout?: number;
}

/** How a container is created. */
export interface ContainerSpec {
  imageSpec: ImageSpec;
  /** Name by which the other containers of the task reach it. Default: the name of the container. */
  hostname?: string;
  environment?: Readonly<Record<string, string>>;
  /**
   * The container's own command, which runs as long as the task; a string is run by `/bin/sh`. Default: none in the agent's
   * container, the image's command in a service.
   */
  command?: string | readonly string[];
  /** User of every command. Default: the image's. */
  user?: string;
  limits?: Omit<Limits, "disk">;
  waitFor?: WaitFor;
}

/** A container of a task. */
export interface ContainerSetup {
  name: string;
  spec: ContainerSpec;
}

/** The network of a task. */
export interface NetworkConfig {
  name: string;
  /** Whether only the task's own containers can be reached. Default: true, unless the manager has `networkEnabled`. */
  internal?: boolean;
}

/** A task: the container that the agent works in, and the services that it needs. */
export interface TaskSetup {
  taskId: string;
  agentContainer: ContainerSetup;
  /** By names of your choice. */
  serviceContainers?: Readonly<Record<string, ContainerSetup>>;
  networkConfig?: NetworkConfig;
}

/** Identifies one task, or one clone of it. */
export interface SandboxState {
  readonly taskId: string;
  readonly agentContainerId: string;
  /** Container ids by the service names of the setup. */
  readonly serviceContainers: Readonly<Record<string, string>>;
  /** The same for a task and its clones. */
  readonly executionId: string;
  /** Absent: the task has no network. */
  readonly networkId?: string;
}

/** The state of a container's own command. */
export interface CommandStatus {
  /** Also false when there is no command. */
  running: boolean;
  /** Present when it has ended. */
  exitCode?: number;
  /** What it wrote to stdout and stderr, in the order of arrival. The middle of a long log is left out. */
  logs: string;
}

/** A running task. Disposing it tears it down. */
export interface Task extends AsyncDisposable {
  readonly taskId: string;
  readonly state: SandboxState;
  /** The container that the agent works in. */
  readonly agent: Sandbox;
  /** The services, by their names in the setup. */
  readonly services: Readonly<Record<string, Sandbox>>;
  /** The state of the own command of a service, or of the agent's container when no name is given. */
  status(service?: string): CommandStatus;
  /** Removes containers, network and clones. Idempotent, never throws: a `leak` event reports what is left, and the next call retries. */
  teardown(): Promise<void>;
}

/** Images that are ready, and the tasks that use them. Disposing it tears down every task. */
export interface Batch extends AsyncDisposable {
  readonly batchId: string;
  setupTask(setup: TaskSetup, opts?: SetupOptions): Promise<Task>;
  /** Idempotent, never throws: a `leak` event reports what is left, and the next call retries. */
  teardown(): Promise<void>;
}

/** How a setup runs. */
export interface SetupOptions {
  /** An abort rejects with `aborted` and leaves nothing behind. */
  signal?: AbortSignal;
}

/** Options of `manager.exec`. */
export interface TaskExecOptions
  extends Pick<
    ExecOptions,
    "stdin" | "cwd" | "env" | "user" | "timeout" | "signal" | "maxOutput" | "raw" | "onStdout" | "onStderr"
  > {
  /** The shell for a string. Default `/bin/sh`. An array goes through a shell only when this is given. */
  shellPath?: string;
}

/** Prepares images for many tasks, and runs the tasks. Every call may be made at any time by any number of callers. */
export interface SandboxManager {
  /** Pulls and builds every image of these tasks. */
  setupBatch(tasks: readonly TaskSetup[], opts?: SetupOptions): Promise<Batch>;
  /** Like `batch.setupTask`, when exactly one batch is open. */
  setupTask(setup: TaskSetup, opts?: SetupOptions): Promise<Task>;
  /** Runs a command in a container of an open batch. */
  exec(containerId: string, cmd: string | readonly string[], opts?: TaskExecOptions): Promise<ExecResult>;
  /** Copies all containers of a task at the same moment, with a network of their own. */
  cloneSandboxState(state: SandboxState, opts?: SetupOptions): Promise<Task>;
}

/** Something that happened to a batch or a task. Secrets are redacted. */
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
