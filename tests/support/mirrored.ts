import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { dismantle } from "../../src/ledger/dismantle.js";
import { createRecord, markReady } from "../../src/ledger/records.js";
import { LocalDriver } from "../../src/sandbox/backends/local/driver.js";
import { buildWalls } from "../../src/sandbox/backends/local/walls.js";
import { newSandboxId } from "../../src/sandbox/backends/local/workspace.js";
import { localCapabilities, removeResource } from "../../src/sandbox/backends/local.js";
import {
  fillMirror,
  forkMirror,
  type MirrorPlan,
  mirroredTree,
  planMirror,
} from "../../src/sandbox/git/live-tree/mirror.js";
import type { MirroredDriver } from "../../src/sandbox/git/live-tree/mirror-git.js";
import { createOperations } from "../../src/sandbox/git/operations.js";
import { nameForkedBranch } from "../../src/sandbox/git/snapshot/fork-files.js";
import type { JailBind } from "../../src/sandbox/jail/jail.js";
import { startJailedGuest } from "../../src/sandbox/jail/start-guest.js";
import { createSandbox } from "../../src/sandbox/portable.js";
import type { Driver, Sandbox, SandboxOptions } from "../../src/sandbox/types.js";

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
export async function openMirrored(place: string, opts: MirroredOptions): Promise<Sandbox> {
  const id = newSandboxId();
  const plan = await planMirror(id, opts);
  const driver = await start(id, place, plan, opts, async () => undefined);
  await fillMirror(plan, driver);
  markReady(id);
  return createSandbox(driver, opts);
}

/** The backend copies its files by itself, as one with images or snapshots of its own would. */
async function forkAll(
  origin: string,
  place: string,
  plan: MirrorPlan,
  opts: MirroredOptions,
  count: number,
): Promise<Driver[]> {
  const drivers: Driver[] = [];
  for (let n = 1; n <= count; n++) {
    const id = newSandboxId();
    const forked = forkMirror(plan, n);
    const copy = (to: string): Promise<void> => cp(origin, to, { recursive: true, verbatimSymlinks: true });
    const driver = await start(id, place, forked, opts, copy);
    await nameForkedBranch(mirroredTree(forked.base, driver, new AbortController().signal));
    markReady(id);
    drivers.push(driver);
  }
  return drivers;
}

async function start(
  id: string,
  place: string,
  plan: MirrorPlan,
  opts: MirroredOptions,
  fill: (workDir: string) => Promise<void>,
): Promise<LocalDriver> {
  const { hasGit = true, tamper = (driver) => driver } = opts;
  const workDir = join(place, `inside-${id}`);
  const resources = [{ kind: "directory", path: workDir }, ...plan.resources];
  await createRecord({ id, backend: "local", workDir, resources });
  await mkdir(workDir, { mode: 0o700 });
  await fill(workDir);
  const trees: JailBind[] = [
    { source: workDir, target: workDir, writable: true, owned: true },
    ...(hasGit ? [] : [{ source: "/dev/null", target: "/usr/bin/git" }]),
  ];
  const walls = buildWalls({ workDir, trees, network: "none", cgroups: [] });
  return new LocalDriver({
    id,
    workDir,
    capabilities: localCapabilities("required"),
    baseEnv: walls.baseEnv,
    guest: await startJailedGuest(walls.spec),
    cgroups: [],
    operations: (own, signal) =>
      createOperations(mirroredTree(plan.base, tamper(own), signal), {
        token: opts.githubToken,
        fork: (_, count) => forkAll(workDir, place, plan, opts, count),
      }),
    release: async () => {
      const remover = async (): Promise<typeof removeResource> => removeResource;
      await dismantle(id, () => true, remover);
    },
  });
}
