import { createHash, randomUUID } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, posix } from "node:path";
import { compareTrees, copyPaths, overlay, pack, unpack } from "./changes.js";
import { type Ran, runInTree } from "./exec.js";
import { Images } from "./images.js";
import { Networks } from "./network.js";
import { removeMatching } from "./patterns.js";
import type { Resolvers } from "./query.js";
import { endpointOf, startService, stopService } from "./services.js";
import { Trees } from "./trees.js";
import type {
  ChangesetValue,
  ContainerValue,
  DirectoryValue,
  EnvVariableValue,
  FileValue,
  ObjectValue,
  PortForward,
  SecretValue,
  ServiceValue,
} from "./values.js";

/** A command that ended in a way that the engine reports as an error. */
class ExecFailure extends Error {
  readonly extensions: Readonly<Record<string, unknown>>;

  constructor(cmd: readonly string[], { exitCode, stdout, stderr }: Ran) {
    super(`exit code: ${exitCode}`);
    this.extensions = { _type: "EXEC_ERROR", cmd, exitCode, stdout: stdout.trim(), stderr: stderr.trim() };
  }
}

/** So many layers fit into the options of one mount, which the kernel gives a page of memory. */
const MAX_LAYERS = 440;
const IMAGE_REF_GONE =
  "Image reference can only be retrieved immediately after the 'Container.From' call. " +
  "Error in fetching imageRef as the container image is changed";

interface ExecArgs {
  args: string[];
  expect: string;
  stdin: string;
  noInit: boolean;
}

/** The object graph of one fake engine: every step is a new value, identical steps are answered from the cache. */
export class Graph {
  readonly trees: Trees = new Trees();
  /** Commands that were really run. */
  readonly ran: string[][] = [];
  /** How many layers the newest container has. */
  newestLayers = 0;
  readonly #images: Images;
  readonly #networks: Networks;
  readonly #values: ObjectValue[] = [];
  readonly #ids = new Map<ObjectValue, string>();
  readonly #cache = new Map<string, Promise<ContainerValue>>();
  readonly #services = new Set<ServiceValue>();

  constructor({ moved = [], healthyWithin = 10_000 }: { moved?: readonly string[]; healthyWithin?: number }) {
    this.#images = new Images(this.trees, moved);
    this.#networks = new Networks(this.trees.root, healthyWithin);
  }

  /** Finds what an id stands for, in this engine alone. */
  load(id: string): ObjectValue {
    const number = Number(Buffer.from(id, "base64").toString().replace("handle:", ""));
    const value = this.#values[number - 1];
    if (value === undefined) throw new Error(`resolve result ${number}: missing shared result`);
    return value;
  }

  close(): void {
    for (const service of this.#services) stopService(service);
    this.trees.remove();
  }

  #id(value: ObjectValue): string {
    const known = this.#ids.get(value) ?? Buffer.from(`handle:${this.#values.push(value)}`).toString("base64");
    this.#ids.set(value, known);
    return known;
  }

  #step(on: ContainerValue, how: unknown, change: () => Promise<Partial<ContainerValue>>): Promise<ContainerValue> {
    const digest = digestOf(on.digest, JSON.stringify(how));
    const known = this.#cache.get(digest);
    if (known !== undefined) return known;
    const made = change().then((changed): ContainerValue => {
      const container = { ...on, image: undefined, ...changed, digest };
      this.newestLayers = container.layers;
      return container;
    });
    this.#cache.set(digest, made);
    // What failed is tried again by the next who asks.
    made.catch(() => this.#cache.delete(digest));
    return made;
  }

  #configure(on: ContainerValue, how: unknown, changed: Partial<ContainerValue>): Promise<ContainerValue> {
    return this.#step(on, how, async () => changed);
  }

  /** One more layer of a container. */
  #change(on: ContainerValue, how: unknown, change: Change): Promise<ContainerValue> {
    return this.#step(on, how, async () => {
      const { path, layers } = await this.#changed({ ...on, path: on.tree }, change);
      return { tree: path, layers };
    });
  }

  /** One more layer of a directory. */
  async #changeDirectory(on: DirectoryValue, how: unknown, change: Change): Promise<DirectoryValue> {
    const digest = digestOf(on.digest, JSON.stringify(how));
    return { type: "Directory", digest, ...(await this.#changed(on, change)) };
  }

  async #changed({ path, layers }: Layers, change: Change): Promise<Layers> {
    checkMount(layers);
    const tree = await this.trees.copy(path);
    await change(tree);
    return { path: tree, layers: layers + 1 };
  }

  #exec(on: ContainerValue, how: ExecArgs, signal: AbortSignal): Promise<ContainerValue> {
    const { args: argv, expect, stdin, noInit } = how;
    return this.#step(on, ["withExec", argv, expect, stdin, noInit], async () => {
      checkMount(on.layers);
      for (const service of on.bindings.values()) await startService(service, this.trees, this.#networks);
      const tree = await this.trees.copy(on.tree);
      this.ran.push(argv);
      const last = await runInTree(on, tree, { argv, root: this.trees.root, noInit }, { signal, stdin });
      const { exitCode } = last;
      const isAny = expect === "ANY" && (exitCode < 128 || exitCode > 191);
      if (exitCode !== 0 && !isAny) throw new ExecFailure(argv, last);
      return { tree, last, layers: on.layers + 1 };
    });
  }

  #service(of: ServiceValue["of"]): ServiceValue {
    const service: ServiceValue = { type: "Service", digest: randomUUID(), of };
    this.#services.add(service);
    return service;
  }

  readonly resolvers: Resolvers = {
    Query: {
      version: () => "v0.21.9",
      node: (_, { id }: { id: string }) => this.load(id),
      host: () => ({ type: "Host" }),
      container: () => emptyContainer(this.trees),
      directory: () => ({ type: "Directory", digest: "empty", path: this.trees.empty(), layers: 0 }),
      setSecret: (_, { name, plaintext }: { name: string; plaintext: string }) => ({ type: "Secret", name, plaintext }),
      secret: (_, { uri }: { uri: string }) => ({ type: "Secret", name: uri, plaintext: providedSecret(uri) }),
    },
    Host: {
      file: (_, { path }: { path: string }) => hostFile(path),
      service: (_, { ports }: { ports: PortForward[] }) => this.#service({ host: ports }),
      tunnel: (_, { service, ports }: { service: ServiceValue; ports: PortForward[] }) => {
        const exposed = "container" in service.of ? service.of.container.ports : [];
        return this.#service({
          tunnel: service,
          ports: ports.length > 0 ? ports : exposed.map((backend) => ({ backend })),
        });
      },
    },
    Container: {
      from: async (on: ContainerValue, { address }: { address: string }) => {
        const { reference: image, tree, layers } = this.#images.resolve(address);
        const env = new Map([["PATH", "/usr/local/bin:/usr/bin:/bin"]]);
        return await this.#configure(on, ["from", image], { tree, env, image, layers });
      },
      withExec: (on: ContainerValue, { args, expect, stdin, noInit }: ExecArgs, signal) =>
        this.#exec(on, { args, expect, stdin, noInit }, signal),
      withWorkdir: (on: ContainerValue, { path }: { path: string }) =>
        this.#configure(on, ["workdir", path], { workdir: path }),
      withUser: (on: ContainerValue, { name }: { name: string }) => this.#configure(on, ["user", name], { user: name }),
      withEnvVariable: (on: ContainerValue, { name, value }: { name: string; value: string }) =>
        this.#configure(on, ["env", name, value], { env: new Map(on.env).set(name, value) }),
      withSecretVariable: (on: ContainerValue, { name, secret }: { name: string; secret: SecretValue }) =>
        this.#configure(on, ["secret", name, secret.name], {
          secrets: new Map(on.secrets).set(name, secret.plaintext),
        }),
      withServiceBinding: (on: ContainerValue, { alias, service }: { alias: string; service: ServiceValue }) =>
        this.#configure(on, ["bind", alias, service.digest], { bindings: new Map(on.bindings).set(alias, service) }),
      withExposedPort: (on: ContainerValue, { port }: { port: number }) =>
        this.#configure(on, ["port", port], { ports: [...on.ports, port] }),
      withFile: (on: ContainerValue, { path, source, permissions }: Put & { source: FileValue }) =>
        this.#change(on, ["withFile", path, permissions, source.digest], (tree) =>
          putFile(join(tree, inside(on, path)), readFileSync(source.path), permissions),
        ),
      withNewFile: (on: ContainerValue, { path, contents, permissions }: Put & { contents: string }) =>
        this.#change(on, ["withNewFile", path, permissions, contents], (tree) =>
          putFile(join(tree, inside(on, path)), contents, permissions),
        ),
      withDirectory: (on: ContainerValue, { path, source }: { path: string; source: DirectoryValue }) =>
        this.#change(on, ["withDirectory", path, source.digest], (tree) =>
          putDirectory(source, join(tree, inside(on, path))),
        ),
      withoutFile: (on: ContainerValue, { path }: { path: string }) => this.#without(on, path),
      withoutDirectory: (on: ContainerValue, { path }: { path: string }) => this.#without(on, path),
      // Of a container, an engine removes one after the other.
      withoutFiles: async (on: ContainerValue, { paths }: { paths: string[] }) => {
        let at = on;
        for (const path of paths) at = await this.#without(at, path);
        return at;
      },
      rootfs: ({ digest, tree, layers }: ContainerValue) => ({
        type: "Directory",
        digest: digestOf(digest, "rootfs"),
        path: tree,
        layers,
      }),
      withRootfs: (on: ContainerValue, { directory: { digest, path, layers } }: { directory: DirectoryValue }) =>
        this.#configure(on, ["rootfs", digest], { tree: path, layers }),
      asTarball: async (on: ContainerValue) => {
        checkMount(on.layers);
        const path = `${this.trees.empty()}.tar`;
        await pack(on.tree, path);
        return { type: "File", digest: digestOf(on.digest, "tarball"), path };
      },
      import: (on: ContainerValue, { source }: { source: FileValue }) =>
        this.#change(on, ["import", source.digest], (tree) => unpack(source.path, tree)),
      asService: (on: ContainerValue, { args, noInit }: { args: string[]; noInit: boolean }) => {
        checkMount(on.layers);
        return this.#service({ container: on, args, noInit });
      },
      sync: (on: ContainerValue) => this.#id(on),
      id: (on: ContainerValue) => this.#id(on),
      stdout: (on: ContainerValue) => on.last?.stdout ?? "",
      stderr: (on: ContainerValue) => on.last?.stderr ?? "",
      exitCode: (on: ContainerValue) => on.last?.exitCode ?? 0,
      user: (on: ContainerValue) => on.user,
      workdir: (on: ContainerValue) => on.workdir,
      imageRef: ({ image }: ContainerValue) => {
        if (image === undefined) throw new Error(IMAGE_REF_GONE);
        return image;
      },
      platform: () => `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
      envVariable: (on: ContainerValue, { name }: { name: string }) => on.env.get(name) ?? null,
      envVariables: (on: ContainerValue) => [...on.env].map(([name, value]) => ({ type: "EnvVariable", name, value })),
      exists: (on: ContainerValue, { path }: { path: string }) => existsSync(join(on.tree, inside(on, path))),
      file: (on: ContainerValue, { path }: { path: string }) => ({
        type: "File",
        digest: digestOf(on.digest, path),
        path: join(on.tree, inside(on, path)),
      }),
      directory: (on: ContainerValue, { path }: { path: string }) => ({
        type: "Directory",
        digest: digestOf(on.digest, path),
        path: join(on.tree, inside(on, path)),
        layers: on.layers,
      }),
    },
    EnvVariable: {
      id: (on: EnvVariableValue) => this.#id(on),
      name: ({ name }: EnvVariableValue) => name,
      value: ({ value }: EnvVariableValue) => value,
    },
    File: {
      id: (on: FileValue) => this.#id(on),
      sync: (on: FileValue) => this.#id(on),
      contents: ({ path }: FileValue) => readFileSync(path, "utf8"),
      size: ({ path }: FileValue) => statSync(path).size,
      export: ({ path: from }: FileValue, { path }: { path: string }) => {
        copyFileSync(from, path);
        return path;
      },
    },
    Directory: {
      id: (on: DirectoryValue) => this.#id(on),
      sync: (on: DirectoryValue) => this.#id(on),
      changes: (after: DirectoryValue, { from: before }: { from: DirectoryValue }) => {
        for (const { layers } of [before, after]) checkMount(layers);
        return { type: "Changeset", before, after };
      },
      withDirectory: (on: DirectoryValue, { path, source }: { path: string; source: DirectoryValue }) =>
        this.#changeDirectory(on, ["withDirectory", path, source.digest], (tree) =>
          putDirectory(source, join(tree, path)),
        ),
      withoutFile: (on: DirectoryValue, { path }: { path: string }) => this.#withoutAll(on, [path]),
      withoutDirectory: (on: DirectoryValue, { path }: { path: string }) => this.#withoutAll(on, [path]),
      withoutFiles: (on: DirectoryValue, { paths }: { paths: string[] }) => this.#withoutAll(on, paths),
      entries: ({ path }: DirectoryValue) =>
        readdirSync(path, { withFileTypes: true }).map((entry) => entry.name + (entry.isDirectory() ? "/" : "")),
    },
    Changeset: {
      sync: (on: ChangesetValue) => this.#id(on),
      id: (on: ChangesetValue) => this.#id(on),
      removedPaths: ({ before, after }: ChangesetValue) => [
        ...compareTrees(before.path, after.path).removed.map((path) => path.slice(1)),
      ],
      layer: async ({ before, after }: ChangesetValue) => {
        const path = this.trees.empty();
        await copyPaths(after.path, compareTrees(before.path, after.path).changed, path);
        return { type: "Directory", digest: digestOf(before.digest, after.digest), path, layers: 1 };
      },
    },
    Secret: { id: (on: SecretValue) => this.#id(on) },
    Service: {
      id: (on: ServiceValue) => this.#id(on),
      start: async (on: ServiceValue) => {
        await startService(on, this.trees, this.#networks);
        return this.#id(on);
      },
      stop: (on: ServiceValue, { kill }: { kill: boolean }) => {
        if (!kill) throw new Error("the stand-in ends services by force alone");
        stopService(on);
        return this.#id(on);
      },
      endpoint: (on: ServiceValue, { port, scheme }: { port?: number; scheme: string }) => endpointOf(on, port, scheme),
    },
  };

  #without(on: ContainerValue, path: string): Promise<ContainerValue> {
    return this.#change(on, ["without", path], (tree) => removeMatching(tree, inside(on, path)));
  }

  #withoutAll(on: DirectoryValue, paths: readonly string[]): Promise<DirectoryValue> {
    return this.#changeDirectory(on, ["without", paths], (tree) => {
      for (const path of paths) removeMatching(tree, path);
    });
  }
}

type Change = (tree: string) => void | Promise<void>;

interface Layers {
  readonly path: string;
  readonly layers: number;
}

interface Put {
  path: string;
  permissions?: number | null;
}

/** To look at layers or to add one to them, an engine mounts them. */
function checkMount(layers: number): void {
  if (layers > MAX_LAYERS) throw new Error("failed to mount /tmp/containerd-mount: mount options is too long");
}

function emptyContainer(trees: Trees): ContainerValue {
  const none = new Map<string, never>();
  return {
    type: "Container",
    digest: "scratch",
    tree: trees.empty(),
    layers: 0,
    env: none,
    secrets: none,
    bindings: none,
    ports: [],
    workdir: "",
    user: "",
  };
}

function hostFile(path: string): FileValue {
  if (!statSync(path).isFile()) throw new Error(`${path}: wrong kind`);
  return { type: "File", digest: digestOf(readFileSync(path).toString("latin1")), path };
}

function putFile(path: string, content: string | Buffer, permissions: number | null | undefined): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  chmodSync(path, permissions ?? 0o644);
}

async function putDirectory({ path }: DirectoryValue, to: string): Promise<void> {
  mkdirSync(to, { recursive: true });
  await overlay(path, to);
}

function providedSecret(uri: string): string {
  const [, scheme, rest = ""] = /^(\w+):\/\/(.*)$/.exec(uri) ?? [];
  const value = scheme === "env" ? process.env[rest] : scheme === "file" ? readFileSync(rest, "utf8") : undefined;
  if (value === undefined) throw new Error(`secret not found: ${uri}`);
  return value;
}

function inside({ workdir }: ContainerValue, path: string): string {
  return posix.resolve("/", workdir, path);
}

function digestOf(...parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}
