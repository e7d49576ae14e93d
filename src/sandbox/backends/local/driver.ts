import type { PendingRemoval } from "../../../../contracts/driver.js";
import type { Changes, NetworkWindow } from "../../../../contracts/types.js";
import { failpoint } from "../../../machine/failpoint.js";
import { readUpTo } from "../../../util/read-up-to.js";
import { type Egress, networkOperations } from "../../egress.js";
import type { LiveTree, RunGuest, TreeOperations } from "../../git.js";
import { type DriverIdentity, GuestDriver } from "../../guest.js";
import { INSIDE_GUEST, type RunningGuest } from "../../jail.js";
import type { Driver, DriverProcess, StartSpec } from "../../types.js";
import { oomKills } from "./limits.js";

const RUN_TIMEOUT = 60_000;

/** What a local driver is made of. */
export interface LocalParts extends DriverIdentity {
  /** The host's path of the files, if they are a directory there. */
  hostDir?: string | undefined;
  guest: RunningGuest;
  /** The way out; without isolation there is none to open or close. */
  egress?: Egress | undefined;
  cgroups: readonly string[];
  /** The files, as the code that saves and compares them sees them. `ending` is aborted when the sandbox is closed. */
  tree(driver: LocalDriver, ending: AbortSignal): LiveTree;
  /** Operations on the files as a whole. */
  operations(driver: LocalDriver, tree: LiveTree): TreeOperations;
  /** Whether the files stay, so that the sandbox can be reopened. */
  keeps(): boolean;
  /** Frees what a closed sandbox does not need. */
  close(): Promise<void>;
}

/** The local driver. */
export class LocalDriver extends GuestDriver {
  readonly backend = "local";
  readonly hostDir?: string;
  readonly tree: LiveTree;
  readonly #parts: LocalParts;
  readonly #ending = new AbortController();
  readonly #settled: () => Promise<void>;
  declare readonly snapshot?: (signal?: AbortSignal) => Promise<string>;
  declare readonly restore?: (id: string) => Promise<void>;
  declare readonly fork?: (count: number) => Promise<Driver[]>;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;
  declare readonly openNetwork?: (allow: readonly string[]) => Promise<NetworkWindow>;
  declare readonly setNetwork?: NonNullable<Driver["setNetwork"]>;
  declare readonly setSecrets?: NonNullable<Driver["setSecrets"]>;

  constructor(parts: LocalParts) {
    super(parts, parts.guest.channel);
    this.#parts = parts;
    if (parts.hostDir !== undefined) this.hostDir = parts.hostDir;
    this.tree = parts.tree(this, this.#ending.signal);
    const { settled, ...operations } = parts.operations(this, this.tree);
    this.#settled = settled;
    const { egress } = parts;
    Object.assign(this, operations, egress && networkOperations(egress));
  }

  /** Runs `work` while every process of the sandbox is frozen; they are always thawed afterwards. */
  async frozen<T>(work: () => Promise<T>): Promise<T> {
    if (this.capabilities.snapshot !== "consistent") return await work();
    return await this.frozenBy(async () => {
      await failpoint("snapshot.frozen");
      return await work();
    });
  }

  /** Runs the guest program in the sandbox, even while everything else is frozen; undefined if it could not be run. */
  async runGuest(...[args, stdin, maxOutput]: Parameters<RunGuest>): ReturnType<RunGuest> {
    try {
      const spec = {
        argv: [INSIDE_GUEST, ...args],
        cwd: this.workDir,
        env: {},
        stdin: "pipe",
        timeout: RUN_TIMEOUT,
      } as const;
      const process = await super.startNow(spec);
      const [stdout, , exit] = await Promise.all([
        readUpTo(process.stdout, maxOutput),
        readUpTo(process.stderr, 0),
        process.wait(),
        process.writeStdin(stdin).then(() => process.closeStdin()),
      ]);
      return stdout.isWhole ? { exitCode: exit.exitCode, stdout: stdout.bytes } : undefined;
    } catch {
      // For example a sandbox without room for one more process: the caller has another way.
      return undefined;
    }
  }

  protected override async startNow(spec: StartSpec): Promise<DriverProcess> {
    const { cgroups } = this.#parts;
    const before = cgroups.length > 0 ? oomKills(cgroups) : undefined;
    const process = await super.startNow(spec);
    return before === undefined ? process : withOomFlag(process, () => (oomKills(cgroups) ?? before) > before);
  }

  /** Ends everything that runs; the files stay. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#parts.guest.stop();
    await this.#settled();
  }

  async close(): Promise<PendingRemoval> {
    this.#ending.abort();
    const { guest, keeps, close } = this.#parts;
    if (keeps()) {
      // Reopening mounts its layer again.
      await this.stop();
      await close();
      return { gone: Promise.resolve() };
    }
    const rest = await guest.end();
    await this.#settled();
    await close();
    return { gone: rest() };
  }
}

/** Distinguishes a command that the memory limit killed from one that was killed otherwise. */
function withOomFlag(process: DriverProcess, wasKilled: () => boolean): DriverProcess {
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    writeStdin: (chunk) => process.writeStdin(chunk),
    closeStdin: () => process.closeStdin(),
    kill: (signal) => process.kill(signal),
    wait: async () => {
      const exit = await process.wait();
      return { ...exit, oomKilled: exit.exitCode !== 0 && wasKilled() };
    },
    ...(process.resize && { resize: (cols: number, rows: number) => process.resize?.(cols, rows) as Promise<void> }),
  };
}
