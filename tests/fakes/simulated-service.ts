import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Backend } from "../../contracts/backend.js";
import type { Driver, DriverExit, DriverProcess, StartSpec } from "../../contracts/driver.js";
import { SandboxError } from "../../contracts/errors.js";
import type { Capabilities } from "../../contracts/types.js";

/** What goes wrong with a command: its machine dies, it never ends, or it ends once and once more with another code. */
export type CommandFault = "dies" | "hangs" | "twice" | undefined;

/** How a simulated service behaves. */
export interface ServiceOptions {
  readonly name: string;
  /** Where it remembers its machines, so that they outlive this process. Default: in memory. */
  readonly folder?: string;
  /** Milliseconds of each request, of a command, and what is added by chance. */
  readonly latency?: { create?: number; exec?: number; remove?: number; jitter?: number };
  /** How many machines there may be; one more is refused as a 429 is. */
  readonly quota?: number;
  onRequest?(name: string): void;
  /** Throws to refuse a machine. `n` counts from 1. */
  onCreate?(n: number): void | Promise<void>;
  onCommand?(task: string, n: number): CommandFault;
  /** Never answers when it is asked to remove a machine. */
  readonly removalHangs?: boolean;
  /** Image of its machines. Default: it has none. */
  readonly image?: string;
  /** Its machines are processes of this one. Default false. */
  readonly runsHere?: boolean;
}

const CAPABILITIES: Capabilities = {
  isolation: "remote",
  killTree: "best-effort",
  network: ["full"],
  limits: [],
  snapshot: "none",
  fork: "none",
  pty: false,
  user: false,
  ports: false,
  git: false,
};

/** A service with machines that run nothing: a command prints the id of its task, `exit 3` ends as it says and `print 9` prints as much. */
export class SimulatedService {
  readonly backend: Backend;
  readonly requests: Record<string, number> = {};
  /** Ids of tasks in the order in which their commands were started. */
  readonly commands: string[] = [];
  /** Most machines that there were at once. */
  most = 0;
  /** How many machines were refused. */
  refused = 0;
  readonly #options: ServiceOptions;
  readonly #machines = new Set<string>();

  constructor(options: ServiceOptions) {
    this.#options = options;
    if (options.folder !== undefined) mkdirSync(options.folder, { recursive: true });
    this.backend = {
      name: options.name,
      capabilities: () => ({ ...CAPABILITIES, limits: options.runsHere === true ? ["memory"] : [] }),
      ...(options.runsHere === true && { runsHere: true }),
      ...(options.image !== undefined && {
        defaultImage: options.image,
        images: ({ image = options.image }) => [image],
      }),
      create: async (_, entry) => {
        await entry.createRecord({ workDir: "/work", resources: [{ kind: "machine", id: entry.id }] });
        await entry.savePlan({ id: entry.id });
        await this.#create(entry.id);
        return this.#driver(entry.id);
      },
      reopen: async (plan, _, entry) => {
        await this.#request("reopen", 0);
        if (!this.machines.includes((plan as { id: string }).id))
          throw new SandboxError("not_found", "no such machine");
        return this.#driver(entry.id);
      },
      removeResource: async ({ id }) => {
        await this.#request("remove", this.#options.latency?.remove ?? 0);
        if (this.#options.removalHangs === true) await new Promise<never>(() => undefined);
        this.#drop(String(id));
      },
    };
  }

  /** Ids of the machines that are there. */
  get machines(): string[] {
    const { folder } = this.#options;
    return folder === undefined ? [...this.#machines] : readdirSync(folder);
  }

  get requestCount(): number {
    return Object.values(this.requests).reduce((sum, count) => sum + count, 0);
  }

  async #create(id: string): Promise<void> {
    const { folder, quota = Number.POSITIVE_INFINITY, latency = {}, onCreate } = this.#options;
    await this.#request("create", latency.create ?? 0);
    await onCreate?.(this.requests["create"] ?? 0);
    if (this.#machines.size >= quota) {
      this.refused += 1;
      throw new SandboxError("unavailable", "429 Too Many Requests", { retryable: true });
    }
    this.#machines.add(id);
    this.most = Math.max(this.most, this.#machines.size);
    if (folder !== undefined) writeFileSync(join(folder, id), "");
  }

  #drop(id: string): void {
    this.#machines.delete(id);
    const { folder } = this.#options;
    if (folder !== undefined && existsSync(join(folder, id))) rmSync(join(folder, id));
  }

  async #request(name: string, latency: number): Promise<void> {
    this.requests[name] = (this.requests[name] ?? 0) + 1;
    this.#options.onRequest?.(name);
    const { jitter = 0 } = this.#options.latency ?? {};
    if (latency + jitter > 0) await delay(latency + Math.random() * jitter);
  }

  #driver(id: string): Driver {
    const absent = async (): Promise<never> => {
      throw new SandboxError("unsupported", "there are no files");
    };
    return {
      backend: this.#options.name,
      id,
      workDir: "/work",
      capabilities: CAPABILITIES,
      baseEnv: {},
      start: (spec) => this.#start(spec),
      read: async () => null,
      write: async () => undefined,
      stat: async () => null,
      list: async () => [],
      remove: async () => false,
      rename: absent,
      makeDirectory: async () => undefined,
      importTree: absent,
      exportTree: async function* () {
        yield new Uint8Array();
      },
      close: async () => undefined,
    };
  }

  async #start(spec: StartSpec): Promise<DriverProcess> {
    const task = spec.env["GLOVEBOX_TASK_ID"] ?? "";
    this.commands.push(task);
    await this.#request("exec", 0);
    const fault = this.#options.onCommand?.(task, this.commands.filter((each) => each === task).length);
    const [, size] = /print (\d+)/.exec(spec.argv.join(" ")) ?? [];
    const output = size === undefined ? `${task}\n` : "x".repeat(Number(size));
    return simulatedProcess(spec, output, fault, this.#options.latency?.exec ?? 0);
  }
}

function simulatedProcess(spec: StartSpec, output: string, fault: CommandFault, latency: number): DriverProcess {
  const [, code = "0"] = /exit (\d+)/.exec(spec.argv.join(" ")) ?? [];
  let kill: () => void = () => undefined;
  const killed = new Promise<DriverExit>((resolve) => {
    kill = () => resolve({ exitCode: 137, signal: "SIGKILL" });
  });
  const lost = (): SandboxError => new SandboxError("backend_lost", "the machine is gone");
  const ended =
    fault === "hangs"
      ? killed
      : Promise.race([
          killed,
          delay(latency).then((): DriverExit => {
            if (fault === "dies") throw lost();
            return { exitCode: Number(code) };
          }),
        ]);
  ended.catch(() => undefined);
  let waits = 0;
  return {
    stdout: streamOf(output, ended),
    stderr: streamOf("", ended),
    writeStdin: async () => undefined,
    closeStdin: async () => undefined,
    kill: async () => kill(),
    wait: async () => {
      waits += 1;
      // A service that answers once more, and not as it did before.
      if (fault === "twice" && waits > 1) return { exitCode: 99 };
      return await ended;
    },
  };
}

/** What a command writes; it ends, or fails, with the command. */
async function* streamOf(text: string, ended: Promise<unknown>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
  await ended;
}
