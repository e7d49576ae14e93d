import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { KINDS, type Kind } from "./kinds.js";
import { invalid, notFound, Refusal } from "./refusal.js";

/** An object as the server has it. */
export interface Stored {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    creationTimestamp: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: { apiVersion: string; kind: string; name: string; uid: string; controller?: boolean }[];
  };
  // biome-ignore lint/suspicious/noExplicitAny: what is in it depends on its kind, and was checked when it came.
  [field: string]: any;
}

/** One change, as a watch reports it. */
export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly version: number;
  readonly object: Stored;
}

/** All objects of the cluster and their history, in memory. */
export class Store {
  readonly #objects = new Map<string, Stored>();
  readonly #changes: Change[] = [];
  readonly #emitter = new EventEmitter().setMaxListeners(0);
  #version = 100;
  #oldest = 100;

  get version(): number {
    return this.#version;
  }

  /** The version before which nothing is known any more. */
  get oldest(): number {
    return this.#oldest;
  }

  find(kind: string, namespace: string, name: string): Stored | undefined {
    return this.#objects.get(keyOf(kind, namespace, name));
  }

  list(kind: string, namespace = ""): Stored[] {
    const all = [...this.#objects.values()].filter((object) => object.kind === kind);
    return all
      .filter(({ metadata }) => namespace === "" || metadata.namespace === namespace)
      .sort((a, b) =>
        keyOf(kind, a.metadata.namespace ?? "", a.metadata.name) <
        keyOf(kind, b.metadata.namespace ?? "", b.metadata.name)
          ? -1
          : 1,
      );
  }

  /** All objects that this one owns. */
  ownedBy(uid: string): Stored[] {
    return [...this.#objects.values()].filter(({ metadata }) =>
      metadata.ownerReferences?.some((owner) => owner.uid === uid),
    );
  }

  create(kind: Kind, namespace: string, body: Record<string, unknown>): Stored {
    const given = (body["metadata"] ?? {}) as Partial<Stored["metadata"]> & { generateName?: string };
    const name = given.name || (given.generateName ? `${given.generateName}${suffix()}` : "");
    if (name === "") throw invalid(kind.kind, "", "metadata.name: Required value: name or generateName is required");
    if (this.find(kind.kind, namespace, name) !== undefined) {
      const details = { name, kind: kind.plural };
      throw new Refusal(409, "AlreadyExists", `${kind.plural} "${name}" already exists`, details);
    }
    const object: Stored = {
      ...structuredClone(body),
      apiVersion: kind.api,
      kind: kind.kind,
      metadata: {
        ...structuredClone(given),
        name,
        ...(kind.isClusterWide !== true && { namespace }),
        uid: randomUUID(),
        resourceVersion: "",
        creationTimestamp: now(),
      },
    };
    return this.#keep("ADDED", object);
  }

  /** Changes an object; `change` gets a copy. Nothing is reported if it stays the same. */
  update(object: Stored, change: (copy: Stored) => void): Stored {
    const current = this.find(object.kind, object.metadata.namespace ?? "", object.metadata.name);
    if (current?.metadata.uid !== object.metadata.uid) throw notFound(pluralOf(object.kind), object.metadata.name);
    const copy = structuredClone(current);
    change(copy);
    return JSON.stringify(copy) === JSON.stringify(current) ? current : this.#keep("MODIFIED", copy);
  }

  remove({ kind, metadata }: Stored): void {
    const key = keyOf(kind, metadata.namespace ?? "", metadata.name);
    const current = this.#objects.get(key);
    if (current?.metadata.uid !== metadata.uid) return;
    this.#objects.delete(key);
    this.#report("DELETED", structuredClone(current));
  }

  /** The changes after a version; they start with the oldest. */
  since(version: number): readonly Change[] {
    return this.#changes.filter((change) => change.version > version);
  }

  /** Forgets what was, as etcd does every five minutes. */
  compact(): void {
    this.#changes.length = 0;
    this.#oldest = ++this.#version;
    this.#emitter.emit("compacted");
  }

  on(listener: (change: Change) => void): () => void {
    this.#emitter.on("change", listener);
    return () => this.#emitter.off("change", listener);
  }

  #keep(type: "ADDED" | "MODIFIED", object: Stored): Stored {
    this.#objects.set(keyOf(object.kind, object.metadata.namespace ?? "", object.metadata.name), object);
    this.#report(type, object);
    return object;
  }

  #report(type: Change["type"], object: Stored): void {
    this.#version += 1;
    object.metadata.resourceVersion = String(this.#version);
    const change = { type, version: this.#version, object: structuredClone(object) };
    this.#changes.push(change);
    this.#emitter.emit("change", change);
  }
}

export function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}

/** What the server appends to a generated name. */
function suffix(): string {
  return Array.from({ length: 5 }, () => "bcdfghjklmnpqrstvwxz2456789"[Math.floor(Math.random() * 27)]).join("");
}

function pluralOf(kind: string): string {
  return KINDS.find((each) => each.kind === kind)?.plural ?? kind;
}

function keyOf(kind: string, namespace: string, name: string): string {
  return `${kind}/${namespace}/${name}`;
}
