import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";

const PREFIX = "10.90";

/** The network of all pods, apart from this machine's. Only root can make one; pods of others reach nothing. */
export class PodNetwork {
  readonly #holder: ChildProcess | undefined;
  #pods = 1;
  readonly #bridges = new Map([["", "pods"]]);

  private constructor(holder: ChildProcess | undefined) {
    this.#holder = holder;
  }

  static async start(): Promise<PodNetwork> {
    if (process.getuid?.() !== 0) return new PodNetwork(undefined);
    const script = `ip link add pods type bridge && ip addr add ${PREFIX}.0.1/16 dev pods && ip link set pods up && echo up && exec sleep infinity`;
    const command = ["--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", script];
    const holder = spawn("setpriv", command, { stdio: ["ignore", "pipe", "inherit"] });
    await once(holder.stdout as Readable, "data");
    return new PodNetwork(holder);
  }

  /** Chooses an address for a pod. */
  nextAddress(): string {
    this.#pods += 1;
    return `${PREFIX}.${this.#pods >> 8}.${this.#pods & 255}`;
  }

  /** Connects a pod, given as its first process, to the others, or only to those of a group. The cable goes with the pod. */
  connect(pid: number, address: string, group = ""): void {
    if (this.#holder?.pid === undefined) return;
    const cable = `pod${pid}`;
    const inside = ["nsenter", "-t", String(pid), "-n"];
    const outside = `nsenter -t ${this.#holder.pid} -n ip link`;
    const known = this.#bridges.get(group);
    const bridge = known ?? `group${this.#bridges.size}`;
    this.#bridges.set(group, bridge);
    const script = [
      ...(known === undefined ? [`${outside} add ${bridge} type bridge`, `${outside} set ${bridge} up`] : []),
      `${outside} add ${cable} type veth peer name eth0 netns ${pid}`,
      `${outside} set ${cable} master ${bridge} up`,
      `${inside.join(" ")} ip addr add ${address}/16 dev eth0`,
      `${inside.join(" ")} ip link set eth0 up`,
    ].join(" && ");
    execFileSync("sh", ["-c", script], { stdio: ["ignore", "ignore", "pipe"] });
  }

  async stop(): Promise<void> {
    if (this.#holder === undefined) return;
    const gone = once(this.#holder, "exit");
    this.#holder.kill("SIGKILL");
    await gone;
  }
}
