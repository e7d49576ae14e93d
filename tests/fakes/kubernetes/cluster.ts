import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { createCertificate } from "../../support/egress/certificate.js";
import { AgentSandbox } from "../../support/kubernetes/agent-sandbox.js";
import { EVERYTHING, type Rule, type User } from "./access.js";
import { Controllers } from "./controllers.js";
import type { Habits } from "./habits.js";
import { KINDS, type Kind } from "./kinds.js";
import { Kubelet } from "./kubelet.js";
import { PodNetwork } from "./network.js";
import { poolObjects } from "./pool-objects.js";
import { ApiServer } from "./server.js";
import { Store, type Stored } from "./store.js";

const ADMIN = "admin-token";

/** A cluster of one node on this machine: the wire of its API server, and pods that are real processes. */
export class FakeCluster {
  readonly store: Store = new Store();
  readonly habits: Habits;
  readonly kubelet: Kubelet;
  readonly api: ApiServer;
  readonly #controllers: Controllers;
  readonly #users = new Map<string, User>([[ADMIN, { name: "admin", rules: EVERYTHING }]]);
  readonly #folder: string;
  readonly #network: PodNetwork;
  readonly #certificate: ReturnType<typeof createCertificate>;
  readonly #sockets = new Set<Socket>();
  /** The same connections, where their bytes are those of HTTP. */
  readonly #streams = new Set<TLSSocket>();
  readonly #held: (() => void)[] = [];
  #isStalled = false;
  #server: Server | undefined;
  #port = 0;

  private constructor(folder: string, habits: Partial<Habits>, network: PodNetwork) {
    this.#network = network;
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    this.habits = {
      ...{ enforcesPolicies: true, ignoresPeers: false, hasV5: true, hasWarmPools: false },
      mostPods: Number.POSITIVE_INFINITY,
      ...{ images: new Set(["glovebox-test/debian:1"]), oomKilled: new Set(), faults: [] },
      ...habits,
    };
    this.#certificate = createCertificate(folder, ["localhost"]);
    this.kubelet = new Kubelet(this.store, folder, this.habits, network);
    this.#controllers = new Controllers(this.store, this.kubelet, this.habits);
    const { store, kubelet, habits: own } = this;
    this.api = new ApiServer({ store, kubelet, controllers: this.#controllers, habits: own, users: this.#users });
    this.addNamespace("default");
  }

  /** Starts a cluster with its files in a folder. */
  static async start(folder: string, habits: Partial<Habits> = {}): Promise<FakeCluster> {
    const cluster = new FakeCluster(folder, habits, await PodNetwork.start());
    await cluster.startServer();
    return cluster;
  }

  /** Path of an administrator's kubeconfig. */
  get kubeconfig(): string {
    return this.writeConfig("kubeconfig", ADMIN);
  }

  /** Installs agent-sandbox, for the pools of a namespace. */
  installPools(namespace: string): AgentSandbox {
    this.habits.hasWarmPools = true;
    return new AgentSandbox(poolObjects(this.store, this.#controllers, namespace));
  }

  addNamespace(name: string): void {
    this.store.create(kindOf("Namespace"), "", { metadata: { name }, status: { phase: "Active" } });
    this.store.create(kindOf("ServiceAccount"), name, { metadata: { name: "default" } });
  }

  /** The kubeconfig of a new user with these rights, and how to make the token too old. */
  addUser(name: string, rules: readonly Rule[]): { kubeconfig: string; expire(): void } {
    const user: User = { name, rules };
    this.#users.set(`token-of-${name}`, user);
    const expire = (): void => {
      user.expires = 0;
    };
    return { kubeconfig: this.writeConfig(`kubeconfig-${name}`, `token-of-${name}`), expire };
  }

  /** The one pod of a sandbox. */
  podOf(id: string): Stored {
    const found = this.store.list("Pod").find(({ metadata }) => metadata.labels?.["glovebox/sandbox"] === id);
    if (found === undefined) throw new Error(`there is no pod of ${id}`);
    return found;
  }

  /** Takes a sandbox's pod away without warning. */
  async deletePod(id: string): Promise<void> {
    this.#controllers.delete(this.podOf(id), "Background", 0);
  }

  /** What there is of sandboxes, by kind and name. */
  objectsOfSandboxes(): string[] {
    const kinds = ["Pod", "Job", "SandboxClaim", "ConfigMap", "PersistentVolumeClaim", "NetworkPolicy"];
    const objects = kinds.flatMap((kind) => this.store.list(kind));
    return objects
      .filter(({ metadata }) => metadata.labels?.["glovebox/sandbox"] !== undefined)
      .map(({ kind, metadata }) => `${kind.toLowerCase()}s/${metadata.name}`);
  }

  /** Listens, always at the same address. */
  async startServer(): Promise<void> {
    const { key, cert } = this.#certificate;
    const server = createServer({ key, cert }, (request, response) => {
      this.#whenMoving(() => {
        this.api.handle(request, response).catch((error: Error) => {
          response.destroy(error);
        });
      });
    });
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    server.on("secureConnection", (socket: TLSSocket) => {
      this.#streams.add(socket);
      socket.on("close", () => this.#streams.delete(socket));
    });
    server.on("upgrade", (request, socket: Socket, head: Buffer) =>
      this.#whenMoving(() => this.api.upgrade(request, socket, head)),
    );
    server.listen(this.#port, "127.0.0.1");
    await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** The server's process dies: its connections are reset, and the pods go on. */
  async killServer(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await new Promise((resolve) => server?.close(resolve));
  }

  /** Nothing moves between the clients and the server, and nothing ends. */
  stall(isStalled: boolean): void {
    if (this.#isStalled === isStalled) return;
    this.#isStalled = isStalled;
    for (const stream of this.#streams) {
      if (isStalled) hold(stream);
      else {
        stream.uncork();
        stream.resume();
      }
    }
    for (const go of isStalled ? [] : this.#held.splice(0)) go();
  }

  #whenMoving(act: () => void): void {
    if (this.#isStalled) this.#held.push(act);
    else act();
  }

  async stop(): Promise<void> {
    if (this.#server) await this.killServer();
    this.#controllers.stop();
    await this.kubelet.stopAll();
    await this.#network.stop();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  private writeConfig(name: string, token: string): string {
    const path = join(this.#folder, name);
    const cluster = {
      server: `https://localhost:${this.#port}`,
      "certificate-authority-data": this.#certificate.cert.toString("base64"),
    };
    const config = {
      ...{ apiVersion: "v1", kind: "Config", "current-context": "fake" },
      clusters: [{ name: "fake", cluster }],
      users: [{ name: "fake", user: { token } }],
      contexts: [{ name: "fake", context: { cluster: "fake", user: "fake", namespace: "default" } }],
    };
    writeFileSync(path, JSON.stringify(config), { mode: 0o600 });
    return path;
  }
}

function kindOf(kind: string): Kind {
  return KINDS.find((each) => each.kind === kind) as Kind;
}

/** Takes nothing from a connection, and keeps what is written to it. */
function hold(stream: TLSSocket): void {
  stream.pause();
  stream.cork();
}
