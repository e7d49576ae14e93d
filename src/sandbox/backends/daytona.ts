import type { Backend, SnapshotRecord } from "../../../contracts/backend.js";
import { SandboxError } from "../../../contracts/errors.js";
import { openWith, otherPlace } from "../lifecycle.js";
import type { Sandbox, SandboxOptions } from "../types.js";
import { conformance } from "./daytona/conformance.js";
import { type DaytonaPlan, DaytonaSandbox, daytonaCapabilities } from "./daytona/daytona-sandbox.js";
import { removeSnapshot, savedMachine } from "./daytona/native-snapshot.js";
import { networkSettings } from "./daytona/network-settings.js";
import { BACKEND, checkLifetime, daytonaOptions, idleMinutes, readAccount, readSource } from "./daytona/options.js";
import { buildSnapshot, SNAPSHOTS } from "./daytona/prepared-snapshot.js";
import { probeDaytona } from "./daytona/probe.js";
import { listRemote } from "./daytona/remote-list.js";
import { removeResource } from "./daytona/remove.js";

export type * from "./daytona/daytona-options.js";

/** Options of other backends, and options that the service can't support. */
const NOT_HERE = ["baseDir", "workspace", "mounts", "gitFilters", "gitAlternates"] as const;

/** Sandboxes at the Daytona service, each a machine of its own. */
export const daytona: Backend = {
  name: BACKEND,
  capabilities: () => daytonaCapabilities(true),
  defaultNetwork: "full",
  options: daytonaOptions,
  check: checkPossible,
  images: ({ image }) => [image],
  startsFromSnapshots: true,
  credentials: [["DAYTONA_API_KEY"], ["DAYTONA_JWT_TOKEN", "DAYTONA_ORGANIZATION_ID"]],
  writtenOptions: ["apiUrl", "target", "snapshot", "resources", "autoStopMinutes", "ttlMinutes"],
  secrets: (opts) => [opts.daytona?.apiKey],
  async create(opts, entry) {
    const saved = entry.snapshot && placedMachine(entry.snapshot, opts);
    const source = opts.repo === undefined ? undefined : readSource(opts.repo);
    const { snapshot, resources, autoStopMinutes = idleMinutes(opts), ttlMinutes } = opts.daytona ?? {};
    const plan = {
      ...{ source, branch: opts.branch, network: opts.network ?? "full", ...(saved && { place: saved.place }) },
      machine: {
        ...(snapshot !== undefined && { snapshot }),
        ...(resources !== undefined && { resources }),
        ...(autoStopMinutes !== undefined && { autoStopMinutes }),
        ...(ttlMinutes !== undefined && { ttlMinutes }),
      },
    };
    return await DaytonaSandbox.create(readAccount(opts), opts, entry, plan, saved);
  },
  async reopen(saved, opts, entry) {
    const plan = saved as DaytonaPlan;
    const own = { ...opts, daytona: { ...plan.machine, ...opts.daytona } };
    return await DaytonaSandbox.reopen(readAccount(own), own, entry, plan);
  },
  removeResource,
  removeSnapshot,
  list: listRemote,
  prepared: { names: SNAPSHOTS, build: buildSnapshot },
  probe: probeDaytona,
  conformance,
};

/** Opens a sandbox at Daytona: a machine of its own, with a clone of `repo` on a new branch. */
export function createDaytonaSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  return openWith(daytona, opts);
}

/** The machine that a snapshot is. Its files are where they were. */
function placedMachine(record: SnapshotRecord, { workDir }: SandboxOptions): ReturnType<typeof savedMachine> {
  const saved = savedMachine(record);
  const { place } = saved;
  if (workDir !== undefined && workDir !== place.workDir) throw otherPlace(record.id, place.workDir);
  return saved;
}

/** Enforce or refuse: everything that can't be enforced is an error here, before anything is created. */
function checkPossible(opts: SandboxOptions): void {
  if (opts.repo !== undefined) readSource(opts.repo);
  const { limits } = opts;
  if (limits !== undefined && Object.values(limits).some((value) => value !== undefined)) {
    throw new SandboxError(
      "unsupported",
      `The daytona backend can't enforce limits (${Object.keys(limits).join(", ")})`,
      {
        hint: "the service only has sizes in whole cores and GiB: daytona: { resources: { cpu, memory, disk } }",
      },
    );
  }
  networkSettings(opts.network);
  checkLifetime(opts);
  for (const name of NOT_HERE) {
    if (opts[name] !== undefined) {
      throw new SandboxError(
        "unsupported",
        `The daytona backend can't enforce ${name}: the sandbox is not on this machine`,
      );
    }
  }
  if (opts.snapshot !== undefined && opts.daytona?.snapshot !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `Option snapshot ("${opts.snapshot}") can't be combined with daytona.snapshot`,
      {
        hint: "snapshot is one that sandbox.snapshot() took, daytona.snapshot one of the service; choose one of the two",
      },
    );
  }
  if (opts.image !== undefined && opts.daytona?.snapshot !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `Option image ("${opts.image}") can't be combined with daytona.snapshot`,
      {
        hint: "choose one of the two",
      },
    );
  }
}
