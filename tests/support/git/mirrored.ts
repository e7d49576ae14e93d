import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { startRemoval } from "../../../src/sandbox/backends/local/cleanup.js";
import { LocalDriver } from "../../../src/sandbox/backends/local/driver.js";
import { buildJail } from "../../../src/sandbox/backends/local/local-jail.js";
import { localCapabilities } from "../../../src/sandbox/backends/local.js";
import {
  fillMirror,
  forkMirror,
  type MirrorPlan,
  mirroredTree,
  planMirror,
} from "../../../src/sandbox/git/live-tree/mirror.js";
import type { MirroredDriver } from "../../../src/sandbox/git/live-tree/mirror-git.js";
import { createOperations } from "../../../src/sandbox/git/operations.js";
import { nameForkedBranch } from "../../../src/sandbox/git/snapshot/fork-files.js";
import type { JailBind } from "../../../src/sandbox/jail/jail.js";
import { startJailedGuest } from "../../../src/sandbox/jail/start-guest.js";
import { openWith } from "../../../src/sandbox/lifecycle.js";
import type { Backend, Sandbox, SandboxEntry, SandboxOptions } from "../../../src/sandbox/types.js";

/** How a mirrored sandbox is opened. */
export interface MirroredOptions extends SandboxOptions {
  repo: string;
  /** Whether the inside has a git. Default true. */
  hasGit?: boolean;
  /** Puts something between the mirror and the driver. */
  tamper?(driver: MirroredDriver): MirroredDriver;
}

/**
 * Opens a sandbox as a backend does whose files the host cannot reach: it happens to be a directory here, but nothing of it
 * is used except through the driver.
 */
export function openMirrored(place: string, { hasGit = true, tamper, ...opts }: MirroredOptions): Promise<Sandbox> {
  const mirrored: Mirrored = { place, hasGit, tamper: tamper ?? ((driver) => driver), token: opts.githubToken };
  const backend: Backend = {
    // Its resources are of the local backend's kinds, so that any process can reap them.
    name: "local",
    capabilities: () => localCapabilities("required"),
    async create(_, entry) {
      const plan = await planMirror(entry.id, opts);
      const driver = await start(mirrored, plan, entry, async () => undefined);
      await fillMirror(plan, driver);
      return driver;
    },
    removeResource: (resource, { beside }) => startRemoval(resource, beside),
  };
  return openWith(backend, opts);
}

interface Mirrored {
  readonly place: string;
  readonly hasGit: boolean;
  tamper(driver: MirroredDriver): MirroredDriver;
  readonly token: string | undefined;
}

async function start(
  mirrored: Mirrored,
  plan: MirrorPlan,
  entry: SandboxEntry,
  fill: (workDir: string) => Promise<void>,
): Promise<LocalDriver> {
  const { place, hasGit, tamper, token } = mirrored;
  const { id } = entry;
  const workDir = join(place, `inside-${id}`);
  await entry.createRecord({ workDir, resources: [{ kind: "directory", path: workDir }, ...plan.resources] });
  await mkdir(workDir, { mode: 0o700 });
  await fill(workDir);
  const trees: JailBind[] = [
    { source: workDir, target: workDir, writable: true, owned: true },
    ...(hasGit ? [] : [{ source: "/dev/null", target: "/usr/bin/git" }]),
  ];
  const walls = buildJail({ workDir, trees, network: "none", cgroups: [] });
  /** The backend copies its files by itself, as one with images or snapshots of its own would. */
  const fork = (count: number): Promise<LocalDriver[]> =>
    entry.fork(count, async (own, n) => {
      const forked = forkMirror(plan, n);
      const copy = (to: string): Promise<void> => cp(workDir, to, { recursive: true, verbatimSymlinks: true });
      const driver = await start(mirrored, forked, own, copy);
      await nameForkedBranch(mirroredTree(forked.base, driver, own.signal));
      return driver;
    });
  return new LocalDriver({
    id,
    workDir,
    capabilities: localCapabilities("required"),
    baseEnv: walls.baseEnv,
    guest: await startJailedGuest(walls.spec),
    cgroups: [],
    tree: (own, ending) => mirroredTree(plan.base, tamper(own), ending),
    operations: (_, tree) => createOperations(tree, { token, fork: (__, count) => fork(count) }),
    keeps: () => false,
    close: async () => undefined,
  });
}
