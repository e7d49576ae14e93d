import { randomUUID } from "node:crypto";
import type { Habits } from "./habits.js";
import { Machine } from "./machine.js";
import { ProcessRoutes } from "./process-routes.js";
import type { Size } from "./sizes.js";

/** Everything the service knows of one sandbox. */
export interface SandboxEntry {
  readonly id: string;
  readonly name: string;
  labels: Record<string, string>;
  /** As it was asked for. */
  readonly asked: Record<string, unknown>;
  state: string;
  errorReason: string | undefined;
  size: Size;
  machine: Machine;
  processes: ProcessRoutes;
  activity: number;
  /** When it was last used, and what uses it now. */
  usedAt: number;
  uses: number;
  ttlMinutes: number;
  networkBlockAll: boolean;
  domainAllowList: string | undefined;
  networkAllowList: string | undefined;
  autoStopInterval: number;
  autoDeleteInterval: number;
}

/** Makes a sandbox with a machine of its own, or with the files of a saved one. */
export function createEntry(asked: Record<string, unknown>, habits: Habits, size: Size, files?: string): SandboxEntry {
  const id = randomUUID();
  const machine = new Machine(files);
  const entry: SandboxEntry = {
    id,
    name: typeof asked["name"] === "string" ? asked["name"] : id,
    labels: (asked["labels"] ?? {}) as Record<string, string>,
    asked,
    state: asked["buildInfo"] === undefined ? "creating" : "pending_build",
    errorReason: undefined,
    size,
    machine,
    processes: new ProcessRoutes(machine, habits),
    activity: 0,
    usedAt: performance.now(),
    uses: 0,
    ttlMinutes: Number(asked["ttlMinutes"] ?? 0),
    networkBlockAll: asked["networkBlockAll"] === true,
    domainAllowList: asked["domainAllowList"] as string | undefined,
    networkAllowList: asked["networkAllowList"] as string | undefined,
    autoStopInterval: Number(asked["autoStopInterval"] ?? 15),
    autoDeleteInterval: Number(asked["autoDeleteInterval"] ?? -1),
  };
  applyNetwork(entry);
  return entry;
}

/** What is blocked, or let through by names only, has no way to this host. */
export function applyNetwork(entry: SandboxEntry): void {
  const lists = [entry.domainAllowList, entry.networkAllowList].flatMap((list) => (list ? list.split(",") : []));
  entry.machine.isolatedNetwork = entry.networkBlockAll || lists.length > 0;
  entry.machine.allowed = entry.networkBlockAll ? [] : lists;
}

/** A sandbox as the API describes it. */
export function toDto(entry: SandboxEntry, origin: string): Record<string, unknown> {
  const { asked, size, machine: _, processes: __, activity: ___, usedAt: ____, uses: _____, ...rest } = entry;
  return {
    ...rest,
    ...size,
    organizationId: "org",
    snapshot: asked["snapshot"],
    buildInfo: asked["buildInfo"],
    user: "daytona",
    env: asked["env"] ?? {},
    public: false,
    target: asked["target"] ?? "us",
    gpu: 0,
    desiredState: "started",
    createdAt: new Date().toISOString(),
    toolboxProxyUrl: `${origin}/toolbox`,
  };
}
