import type { Changes, NetworkWindow } from "../../../../contracts/types.js";
import { type DriverIdentity, GuestDriver } from "../../guest.js";
import type { Driver } from "../../types.js";
import type { RunningPod } from "./start-pod.js";

/** Operations that not every pod supports. */
export type KubernetesOperations = Pick<
  Driver,
  "snapshot" | "restore" | "fork" | "changes" | "git" | "openNetwork" | "setNetwork" | "setSecrets"
>;

/** What the driver of a pod needs. */
export interface KubernetesParts extends DriverIdentity {
  readonly pod: RunningPod;
  /** Operations on the files as a whole. */
  operations(driver: KubernetesDriver): KubernetesOperations;
  /** Ends what this process holds for it. */
  release(): Promise<void>;
}

/** The driver of one pod. */
export class KubernetesDriver extends GuestDriver {
  readonly backend = "kubernetes";
  readonly pod: RunningPod;
  readonly #release: () => Promise<void>;
  declare readonly snapshot?: (signal?: AbortSignal) => Promise<string>;
  declare readonly restore?: (id: string) => Promise<void>;
  declare readonly fork?: (count: number) => Promise<Driver[]>;
  declare readonly changes?: () => Promise<Changes>;
  declare readonly git?: NonNullable<Driver["git"]>;
  declare readonly openNetwork?: (allow: readonly string[]) => Promise<NetworkWindow>;
  declare readonly setNetwork?: NonNullable<Driver["setNetwork"]>;
  declare readonly setSecrets?: NonNullable<Driver["setSecrets"]>;

  constructor(parts: KubernetesParts) {
    super(parts, parts.pod.channel);
    this.pod = parts.pod;
    this.#release = parts.release;
    Object.assign(this, parts.operations(this));
  }

  /** Runs `work` while every process in the pod is stopped. */
  frozen<T>(work: () => Promise<T>): Promise<T> {
    return this.frozenBy(work);
  }

  /** Runs `work` while no new operation starts. */
  undisturbed<T>(work: () => Promise<T>): Promise<T> {
    return this.alone(work);
  }

  async close(): Promise<void> {
    await this.#release();
  }
}
