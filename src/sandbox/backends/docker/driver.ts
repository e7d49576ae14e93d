import type { Changes, NetworkWindow } from "../../../../contracts/types.js";
import { type DriverIdentity, GuestDriver } from "../../guest.js";
import type { Driver, DriverProcess, StartSpec } from "../../types.js";
import type { RunningContainer } from "./container.js";

/** Operations that not every container supports. */
export type DockerOperations = Pick<
  Driver,
  "snapshot" | "restore" | "fork" | "changes" | "git" | "openNetwork" | "setNetwork" | "setSecrets"
>;

/** What the driver of a container needs. */
export interface DockerParts extends DriverIdentity {
  container: RunningContainer;
  /** Operations on the files as a whole. */
  operations?(driver: DockerDriver): DockerOperations;
  /** Ends the container, or removes it. */
  release(): Promise<void>;
}

/** The driver of one container. */
export class DockerDriver extends GuestDriver {
  readonly backend = "docker";
  readonly #release: () => Promise<void>;
  #container: RunningContainer;
  declare readonly snapshot?: (signal?: AbortSignal) => Promise<string>;
  declare readonly restore?: (id: string) => Promise<void>;
  declare readonly fork?: (count: number) => Promise<Driver[]>;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;
  declare readonly openNetwork?: (allow: readonly string[]) => Promise<NetworkWindow>;
  declare readonly setNetwork?: NonNullable<Driver["setNetwork"]>;
  declare readonly setSecrets?: NonNullable<Driver["setSecrets"]>;

  constructor(parts: DockerParts) {
    super(parts, parts.container.channel);
    this.#container = parts.container;
    this.#release = parts.release;
    Object.assign(this, parts.operations?.(this));
  }

  /** The current container; `replace` swaps it. */
  get container(): RunningContainer {
    return this.#container;
  }

  /** Replaces the container, while no new operation starts. */
  async replace(make: (old: RunningContainer) => Promise<RunningContainer>): Promise<void> {
    await this.alone(async () => {
      this.#container = await make(this.#container);
      this.useChannel(this.#container.channel);
    });
  }

  /** Runs `work` while no new operation starts. */
  undisturbed<T>(work: (container: RunningContainer) => Promise<T>): Promise<T> {
    return this.alone(() => work(this.#container));
  }

  /** Runs `work` while every process in the container is stopped. */
  frozen<T>(work: () => Promise<T>): Promise<T> {
    return this.frozenBy(work);
  }

  protected override startNow(spec: StartSpec): Promise<DriverProcess> {
    const { capabilities, privileged } = this.#container.plan.unsafe ?? {};
    const keepCapabilities = privileged === true || (capabilities ?? []).length > 0;
    return super.startNow({ ...spec, keepCapabilities });
  }

  async close(): Promise<void> {
    this.#container.channel.close();
    await this.#release();
  }
}
