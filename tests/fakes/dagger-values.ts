import type { ChildProcess } from "node:child_process";
import type { Server } from "node:net";
import type { Ran } from "./dagger-exec.js";

/** A container of the graph: immutable, named by the digest of how it came to be. */
export interface ContainerValue {
  readonly type: "Container";
  readonly digest: string;
  readonly tree: string;
  readonly image: string;
  readonly env: ReadonlyMap<string, string>;
  readonly secrets: ReadonlyMap<string, string>;
  readonly bindings: ReadonlyMap<string, ServiceValue>;
  readonly ports: readonly number[];
  readonly workdir: string;
  readonly user: string;
  readonly last?: Ran;
}

/** A file or a directory somewhere on this machine. */
export interface PathValue {
  readonly type: "File" | "Directory";
  readonly digest: string;
  readonly path: string;
}

/** What became of one directory. */
export interface ChangesetValue {
  readonly type: "Changeset";
  readonly before: PathValue;
  readonly after: PathValue;
}

export interface SecretValue {
  readonly type: "Secret";
  readonly name: string;
  readonly plaintext: string;
}

/** Something that listens: a container that runs, a port of the host, or a way from the host to one. */
export interface ServiceValue {
  readonly type: "Service";
  readonly digest: string;
  readonly container?: ContainerValue;
  readonly args: readonly string[];
  readonly forwards: readonly { backend: number; frontend: number }[];
  running?: { child?: ChildProcess; servers: Server[] };
}

export interface EnvVariableValue {
  readonly type: "EnvVariable";
  readonly name: string;
  readonly value: string;
}

export interface RootValue {
  readonly type: "Query" | "Host";
}

export type Value =
  | ContainerValue
  | PathValue
  | ChangesetValue
  | SecretValue
  | ServiceValue
  | EnvVariableValue
  | RootValue
  | string
  | number
  | boolean
  | null
  | Value[];
