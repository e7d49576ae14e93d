import type { ChildProcess } from "node:child_process";
import type { Server } from "node:net";
import type { Ran } from "./exec.js";

/** A container of the graph: immutable, named by the digest of how it came to be. */
export interface ContainerValue {
  readonly type: "Container";
  readonly digest: string;
  readonly tree: string;
  /** How many layers a mount of its file system has. */
  readonly layers: number;
  /** The image with its digest. An engine knows it until the first change. */
  readonly image?: string | undefined;
  readonly env: ReadonlyMap<string, string>;
  readonly secrets: ReadonlyMap<string, string>;
  readonly bindings: ReadonlyMap<string, ServiceValue>;
  readonly ports: readonly number[];
  readonly workdir: string;
  readonly user: string;
  readonly last?: Ran;
}

/** A directory somewhere on this machine. */
export interface DirectoryValue {
  readonly type: "Directory";
  readonly digest: string;
  readonly path: string;
  readonly layers: number;
}

/** A file somewhere on this machine. */
export interface FileValue {
  readonly type: "File";
  readonly digest: string;
  readonly path: string;
}

/** What became of one directory. */
export interface ChangesetValue {
  readonly type: "Changeset";
  readonly before: DirectoryValue;
  readonly after: DirectoryValue;
}

export interface SecretValue {
  readonly type: "Secret";
  readonly name: string;
  readonly plaintext: string;
}

export interface PortForward {
  readonly backend: number;
  readonly frontend?: number;
}

/** Something that listens: a container that runs, ports of the host, or a way from the host to another service. */
export interface ServiceValue {
  readonly type: "Service";
  readonly digest: string;
  readonly of:
    | { readonly container: ContainerValue; readonly args: readonly string[]; readonly noInit: boolean }
    | { readonly host: readonly PortForward[] }
    | { readonly tunnel: ServiceValue; readonly ports: readonly PortForward[] };
  running?: RunningService;
}

/** A service that was started. */
export interface RunningService {
  child?: ChildProcess;
  /** Listeners of ours: they end with it. */
  readonly servers: Server[];
  /** By port, the Unix socket by which it is reached from other networks. */
  readonly sockets: Map<number, string>;
}

export interface EnvVariableValue {
  readonly type: "EnvVariable";
  readonly name: string;
  readonly value: string;
}

export interface RootValue {
  readonly type: "Query" | "Host";
}

export type ObjectValue =
  | ContainerValue
  | DirectoryValue
  | FileValue
  | ChangesetValue
  | SecretValue
  | ServiceValue
  | EnvVariableValue
  | RootValue;

export type Value = ObjectValue | string | number | boolean | null | Value[];
