import { createHash, randomUUID } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, posix } from "node:path";
import { compareTrees, copyPaths, overlay, pack, unpack } from "./dagger-changes.js";
import { type Ran, runInTree } from "./dagger-exec.js";
import type { Selection } from "./dagger-query.js";
import { endpointOf, startService, stopService } from "./dagger-services.js";
import { Trees } from "./dagger-trees.js";
import type { ChangesetValue, ContainerValue, PathValue, ServiceValue, Value } from "./dagger-values.js";

/** A command that ended in a way that the engine reports as an error. */
export class ExecFailure extends Error {
  readonly cmd: readonly string[];
  readonly ran: Ran;

  constructor(cmd: readonly string[], ran: Ran) {
    super(`exit code: ${ran.exitCode}`);
    this.cmd = cmd;
    this.ran = ran;
  }
}

type Args = Record<string, unknown>;
type Resolver = (on: never, args: Args, signal: AbortSignal) => Value | Promise<Value>;

/** The object graph of one fake engine: every step is a new value, identical steps are answered from the cache. */
export class Graph {
  readonly trees: Trees = new Trees();
  /** Commands that were really run. */
  readonly ran: string[][] = [];
  readonly #images: Map<string, string>;
  readonly #handles: Value[] = [];
  readonly #cache = new Map<string, Promise<ContainerValue>>();
  readonly #services = new Set<ServiceValue>();

  constructor() {
    const tree = this.trees.distribution();
    this.#images = new Map(["debian:stable-slim", "alpine:3"].map((name) => [name, tree]));
  }

  /** Follows a chain of fields from the root; gives what the last one is. */
  async resolve(chain: readonly Selection[], signal: AbortSignal): Promise<Value> {
    let at: Value = { type: "Query" };
    for (const { name, args } of chain) {
      if (Array.isArray(at)) return at.map((value) => ({ [name]: this.#handle(value) }) as unknown as Value);
      const type: string = typeof at === "object" && at !== null ? at.type : "";
      const resolver: Resolver | undefined = (this.#resolvers[type] as Record<string, Resolver> | undefined)?.[name];
      if (resolver === undefined) throw new Error(`Cannot query field "${name}" on type "${type}".`);
      at = await resolver(at as never, args, signal);
    }
    return at;
  }

  close(): void {
    for (const service of this.#services) stopService(service);
    this.trees.remove();
  }

  #handle(value: Value): string {
    return Buffer.from(`handle:${this.#handles.push(value)}`).toString("base64");
  }

  #load(id: unknown): Value {
    const number = Number(Buffer.from(String(id), "base64").toString().replace("handle:", ""));
    const value = this.#handles[number - 1];
    if (value === undefined) throw new Error(`resolve result ${number}: missing shared result`);
    return value;
  }

  #step(on: ContainerValue, how: string, change: () => Promise<Partial<ContainerValue>>): Promise<ContainerValue> {
    const digest = digestOf(on.digest, how);
    const known = this.#cache.get(digest);
    if (known !== undefined) return known;
    const made = change().then((changed): ContainerValue => ({ ...on, ...changed, digest }));
    this.#cache.set(digest, made);
    // What failed is tried again by the next who asks.
    made.catch(() => this.#cache.delete(digest));
    return made;
  }

  #configure(on: ContainerValue, how: string, changed: Partial<ContainerValue>): Promise<ContainerValue> {
    return this.#step(on, how, async () => changed);
  }

  async #changeTree(
    on: ContainerValue,
    change: (tree: string) => void | Promise<void>,
  ): Promise<Partial<ContainerValue>> {
    const tree = await this.trees.copy(on.tree);
    await change(tree);
    return { tree };
  }

  #without(on: ContainerValue, paths: readonly string[]): Promise<ContainerValue> {
    return this.#step(on, JSON.stringify(["without", paths]), () =>
      this.#changeTree(on, (tree) => {
        for (const path of paths) rmSync(join(tree, inside(on, path)), { recursive: true, force: true });
      }),
    );
  }

  #exec(on: ContainerValue, args: Args, signal: AbortSignal): Promise<ContainerValue> {
    const argv = args["args"] as string[];
    return this.#step(on, JSON.stringify(["withExec", args]), async () => {
      for (const service of on.bindings.values()) await startService(service, this.trees);
      const tree = await this.trees.copy(on.tree);
      this.ran.push(argv);
      const stdin = typeof args["stdin"] === "string" ? args["stdin"] : "";
      const last = await runInTree(on, tree, argv, { root: this.trees.root, signal, stdin });
      const { exitCode } = last;
      const isAny = args["expect"] === "ANY" && (exitCode < 128 || exitCode > 191);
      if (exitCode !== 0 && !isAny) throw new ExecFailure(argv, last);
      return { tree, last };
    });
  }

  #service(fields: Omit<ServiceValue, "type" | "digest">): ServiceValue {
    const service: ServiceValue = { type: "Service", digest: randomUUID(), ...fields };
    this.#services.add(service);
    return service;
  }

  readonly #resolvers: Readonly<Record<string, Record<string, Resolver>>> = {
    Query: {
      version: () => "v0.21.9",
      node: (_, { id }) => this.#load(id),
      loadContainerFromID: (_, { id }) => this.#load(id),
      loadServiceFromID: (_, { id }) => this.#load(id),
      host: () => ({ type: "Host" }),
      container: () => emptyContainer(this.trees),
      directory: () => ({ type: "Directory", digest: "empty", path: this.trees.empty() }),
      setSecret: (_, { name, plaintext }) => ({ type: "Secret", name: String(name), plaintext: String(plaintext) }),
      secret: (_, { uri }) => ({ type: "Secret", name: String(uri), plaintext: providedSecret(String(uri)) }),
    },
    Host: {
      file: (_, { path }) => hostPath("File", String(path)),
      directory: (_, { path }) => hostPath("Directory", String(path)),
      service: (_, { ports }) =>
        this.#service({
          args: [],
          forwards: (ports as { backend: number; frontend?: number }[]).map(({ backend, frontend }) => ({
            backend,
            frontend: frontend || backend,
          })),
        }),
      tunnel: (_, { service, ports }) => {
        const { container } = this.#load(service) as ServiceValue;
        const all = (ports as { backend: number; frontend?: number }[] | undefined) ?? [];
        const wanted = all.length > 0 ? all : (container?.ports ?? []).map((backend) => ({ backend }));
        return this.#service({ args: [], forwards: wanted.map(({ backend }) => ({ backend, frontend: 0 })) });
      },
    },
    Container: {
      from: async (on: ContainerValue, { address }) => {
        const tree = this.#images.get(String(address).replace(/@sha256:.*/, ""));
        if (tree === undefined) throw new Error(`failed to resolve image "${String(address)}": not found`);
        const env = new Map([["PATH", "/usr/local/bin:/usr/bin:/bin"]]);
        return await this.#configure(on, `from ${String(address)}`, {
          tree,
          env,
          image: `${String(address).replace(/@.*/, "")}@sha256:${"0".repeat(64)}`,
        });
      },
      withExec: (on: ContainerValue, args, signal) => this.#exec(on, args, signal),
      withWorkdir: (on: ContainerValue, { path }) =>
        this.#configure(on, `workdir ${String(path)}`, { workdir: String(path) }),
      withUser: (on: ContainerValue, { name }) => this.#configure(on, `user ${String(name)}`, { user: String(name) }),
      withEnvVariable: (on: ContainerValue, { name, value }) =>
        this.#configure(on, `env ${String(name)}=${String(value)}`, {
          env: new Map(on.env).set(String(name), String(value)),
        }),
      withSecretVariable: (on: ContainerValue, { name, secret }) => {
        const { name: id, plaintext } = this.#load(secret) as { name: string; plaintext: string };
        return this.#configure(on, `secret ${String(name)}=${id}`, {
          secrets: new Map(on.secrets).set(String(name), plaintext),
        });
      },
      withServiceBinding: (on: ContainerValue, { alias, service }) => {
        const bound = this.#load(service) as ServiceValue;
        return this.#configure(on, `bind ${String(alias)} ${bound.digest}`, {
          bindings: new Map(on.bindings).set(String(alias), bound),
        });
      },
      withExposedPort: (on: ContainerValue, { port }) =>
        this.#configure(on, `port ${String(port)}`, { ports: [...on.ports, Number(port)] }),
      withFile: (on: ContainerValue, { path, source, permissions }) => {
        const file = this.#load(source) as PathValue;
        return this.#step(on, JSON.stringify(["withFile", path, permissions, file.digest]), () =>
          this.#changeTree(on, (tree) => putFile(join(tree, String(path)), readFileSync(file.path), permissions)),
        );
      },
      withNewFile: (on: ContainerValue, { path, contents, permissions }) =>
        this.#step(on, JSON.stringify(["withNewFile", path, permissions, contents]), () =>
          this.#changeTree(on, (tree) => putFile(join(tree, String(path)), String(contents), permissions)),
        ),
      withDirectory: (on: ContainerValue, { path, source }) => {
        const directory = this.#load(source) as PathValue;
        return this.#step(on, JSON.stringify(["withDirectory", path, directory.digest]), () =>
          this.#changeTree(on, async (tree) => {
            mkdirSync(join(tree, String(path)), { recursive: true });
            await overlay(directory.path, join(tree, String(path)));
          }),
        );
      },
      withoutFiles: (on: ContainerValue, { paths }) => this.#without(on, paths as string[]),
      withoutDirectory: (on: ContainerValue, { path }) => this.#without(on, [String(path)]),
      rootfs: (on: ContainerValue) => ({ type: "Directory", digest: digestOf(on.digest, "rootfs"), path: on.tree }),
      withRootfs: (on: ContainerValue, { directory }) => {
        const { digest, path: tree } = this.#load(directory) as PathValue;
        return this.#configure(on, `rootfs ${digest}`, { tree });
      },
      asTarball: async (on: ContainerValue) => {
        const path = `${this.trees.empty()}.tar`;
        await pack(on.tree, path);
        return { type: "File", digest: digestOf(on.digest, "tarball"), path };
      },
      import: (on: ContainerValue, { source }) => {
        const { digest, path } = this.#load(source) as PathValue;
        return this.#step(on, `import ${digest}`, () => this.#changeTree(on, (tree) => unpack(path, tree)));
      },
      asService: (on: ContainerValue, { args }) =>
        this.#service({ container: on, args: (args as string[] | undefined) ?? [], forwards: [] }),
      sync: (on: ContainerValue) => this.#handle(on),
      id: (on: ContainerValue) => this.#handle(on),
      stdout: (on: ContainerValue) => on.last?.stdout ?? "",
      stderr: (on: ContainerValue) => on.last?.stderr ?? "",
      exitCode: (on: ContainerValue) => on.last?.exitCode ?? 0,
      user: (on: ContainerValue) => on.user,
      workdir: (on: ContainerValue) => on.workdir,
      imageRef: (on: ContainerValue) => on.image,
      platform: () => `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
      envVariable: (on: ContainerValue, { name }) => on.env.get(String(name)) ?? null,
      envVariables: (on: ContainerValue) => [...on.env].map(([name, value]) => ({ type: "EnvVariable", name, value })),
      exists: (on: ContainerValue, { path }) => existsSync(join(on.tree, inside(on, path))),
      file: (on: ContainerValue, { path }) => ({
        type: "File",
        digest: digestOf(on.digest, String(path)),
        path: join(on.tree, inside(on, path)),
      }),
      directory: (on: ContainerValue, { path }) => ({
        type: "Directory",
        digest: digestOf(on.digest, String(path)),
        path: join(on.tree, inside(on, path)),
      }),
    },
    EnvVariable: {
      id: (on: never) => this.#handle(on),
      name: ({ name }: { name: string }) => name,
      value: ({ value }: { value: string }) => value,
    },
    File: {
      id: (on: PathValue) => this.#handle(on),
      sync: (on: PathValue) => this.#handle(on),
      contents: ({ path }: PathValue) => readFileSync(path, "utf8"),
      size: ({ path }: PathValue) => statSync(path).size,
      export: ({ path: from }: PathValue, { path }) => {
        copyFileSync(from, String(path));
        return String(path);
      },
    },
    Directory: {
      id: (on: PathValue) => this.#handle(on),
      changes: (on: PathValue, { from }) => ({ type: "Changeset", before: this.#load(from) as PathValue, after: on }),
      entries: ({ path }: PathValue) =>
        readdirSync(path, { withFileTypes: true }).map((entry) => entry.name + (entry.isDirectory() ? "/" : "")),
    },
    Changeset: {
      sync: (on: ChangesetValue) => this.#handle(on),
      id: (on: ChangesetValue) => this.#handle(on),
      removedPaths: ({ before, after }: ChangesetValue) => [
        ...compareTrees(before.path, after.path).removed.map((path) => path.slice(1)),
      ],
      layer: async ({ before, after }: ChangesetValue) => {
        const path = this.trees.empty();
        await copyPaths(after.path, compareTrees(before.path, after.path).changed, path);
        return { type: "Directory", digest: digestOf(before.digest, after.digest), path };
      },
    },
    Secret: { id: (on: never) => this.#handle(on) },
    Service: {
      id: (on: ServiceValue) => this.#handle(on),
      start: async (on: ServiceValue) => {
        await startService(on, this.trees);
        return this.#handle(on);
      },
      stop: (on: ServiceValue) => {
        stopService(on);
        return this.#handle(on);
      },
      endpoint: (on: ServiceValue, { port, scheme }) =>
        endpointOf(on, port as number | undefined, scheme as string | undefined),
    },
  };
}

function emptyContainer(trees: Trees): ContainerValue {
  const none = new Map<string, never>();
  return {
    type: "Container",
    digest: "scratch",
    tree: trees.empty(),
    image: "",
    env: none,
    secrets: none,
    bindings: none,
    ports: [],
    workdir: "",
    user: "",
  };
}

function hostPath(type: PathValue["type"], path: string): PathValue {
  const found = statSync(path);
  const digest = type === "File" ? digestOf(readFileSync(path).toString("latin1")) : digestOf(path, randomUUID());
  if (found.isDirectory() !== (type === "Directory")) throw new Error(`${path}: wrong kind`);
  return { type, digest, path };
}

function putFile(path: string, content: string | Buffer, permissions: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, typeof permissions === "number" ? permissions : 0o644);
}

function providedSecret(uri: string): string {
  const [, scheme, rest = ""] = /^(\w+):\/\/(.*)$/.exec(uri) ?? [];
  const value = scheme === "env" ? process.env[rest] : scheme === "file" ? readFileSync(rest, "utf8") : undefined;
  if (value === undefined) throw new Error(`secret not found: ${uri}`);
  return value;
}

function inside({ workdir }: ContainerValue, path: unknown): string {
  return posix.resolve("/", workdir, String(path));
}

function digestOf(...parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
