import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { cp, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import { findSnapshotRecord, readSnapshotRecord, removeSnapshotRecord, writeSnapshotRecord } from "../../src/ledger.js";
import { LocalDriver } from "../../src/sandbox/backends/local/driver.js";
import { plainEnv } from "../../src/sandbox/backends/local/plain-env.js";
import { localCapabilities } from "../../src/sandbox/backends/local.js";
import { startPlainGuest } from "../../src/sandbox/jail/start-guest.js";
import { validateSandboxOptions } from "../../src/sandbox/lifecycle/options.js";
import type { Driver, SandboxOptions } from "../../src/sandbox/types.js";
import { createSandbox } from "../../src/sandbox.js";
import type { ConformanceHarness } from "../../src/testing.js";
import { descendants } from "../support/processes/descendants.js";
import type { Mutant } from "./mutant.js";

/** Where the files of one sandbox are, and whether they stay. */
interface Place {
  readonly path: string;
  readonly workDir: string;
  keep: boolean;
}

async function newPlace(keep: boolean): Promise<Place> {
  const path = await realpath(await mkdtemp(join(tmpdir(), "glovebox-mutant-")));
  return { path, workDir: await mkdtemp(join(path, "work-")), keep };
}

/** The driver that the mutants break: the local one without isolation, which passes every case that is run here. */
async function openBase(at: Place, snapshots: string[]): Promise<Driver> {
  const { path, workDir } = at;
  return new LocalDriver({
    id: basename(path),
    workDir,
    hostDir: workDir,
    capabilities: { ...localCapabilities("none"), snapshot: "crash-consistent", paths: ["workdir", "sandbox"] },
    baseEnv: plainEnv(path),
    guest: await startPlainGuest(workDir, []),
    cgroups: [],
    tree: () => undefined as never,
    operations: ({ id }) => ({
      settled: async () => undefined,
      snapshot: () => saveFiles(id, workDir, snapshots),
      restore: (snapshot) => restoreFiles(workDir, snapshot),
    }),
    keeps: () => at.keep,
    close: async () => {
      if (!at.keep) await rm(path, { recursive: true, force: true });
    },
  });
}

async function saveFiles(sandboxId: string, workDir: string, snapshots: string[]): Promise<string> {
  const id = `mutant-${randomBytes(8).toString("hex")}`;
  snapshots.push(id);
  const archive = join(tmpdir(), `glovebox-${id}`);
  await cp(workDir, archive, { recursive: true, verbatimSymlinks: true });
  const createdAt = new Date().toISOString();
  await writeSnapshotRecord({ version: 1, id, sandboxId, backend: "mutant", createdAt, archive });
  return id;
}

async function restoreFiles(workDir: string, snapshot: string): Promise<void> {
  const { archive = "" } = await readSnapshotRecord(snapshot);
  for (const name of await readdir(workDir)) await rm(join(workDir, name), { recursive: true });
  await cp(archive, workDir, { recursive: true, verbatimSymlinks: true });
}

/** The kit's way to a mutant, or to the base when none is given; `cleanUp` takes away what a mutant left. */
export function createMutantHarness(mutant?: Mutant): ConformanceHarness & { cleanUp(): Promise<void> } {
  const opened: { driver: Driver; guest: number | undefined; at: Place }[] = [];
  const snapshots: string[] = [];
  const guestOf = (workDir: string): number | undefined =>
    descendants(process.pid).find((pid) => commandLine(pid).endsWith(`\0serve\0${workDir}\0`));
  const placeOf = async ({ id, keep }: SandboxOptions): Promise<Place> => {
    if (id === undefined) return await newPlace(keep === true);
    const kept = opened.find(({ driver, at }) => driver.id === id && at.keep)?.at;
    if (kept === undefined) throw new SandboxError("not_found", `No kept sandbox with the id "${id}"`);
    return Object.assign(kept, { keep: keep ?? true });
  };
  return {
    backend: mutant?.name ?? "base",
    async open(given = {}) {
      const opts = mutant?.options?.(given) ?? given;
      validateSandboxOptions(opts);
      const snapshot = opts.snapshot === undefined ? undefined : await findSnapshotRecord(opts.snapshot);
      const at = await placeOf(opts);
      const driver = await openBase(at, snapshots);
      opened.push({ driver, guest: guestOf(driver.workDir), at });
      if (snapshot !== undefined) await driver.restore?.(snapshot.id);
      const close = async (own: Driver, isExpired: boolean): Promise<void> => {
        if (isExpired && mutant?.keepsExpired !== true) at.keep = false;
        await (await own.close())?.gone;
      };
      const sandbox = createSandbox(mutant?.driver?.(driver) ?? driver, opts, { close });
      return mutant?.sandbox?.(sandbox) ?? sandbox;
    },
    async census() {
      return opened.flatMap(({ driver: { workDir }, guest }) => [
        ...(existsSync(workDir) ? [workDir] : []),
        ...(guest !== undefined && existsSync(`/proc/${guest}`) ? [`the guest of ${workDir}`] : []),
      ]);
    },
    host: {
      directoryOf: ({ workDir }) => workDir,
      async sever({ workDir }) {
        const guest = guestOf(workDir);
        if (guest === undefined) throw new Error(`no guest serves ${workDir}`);
        process.kill(guest, "SIGKILL");
      },
    },
    async cleanUp() {
      for (const { driver, at } of opened.splice(0)) {
        at.keep = false;
        await driver.close();
      }
      for (const id of snapshots.splice(0)) {
        await rm(join(tmpdir(), `glovebox-${id}`), { recursive: true, force: true });
        await removeSnapshotRecord(id);
      }
    },
  };
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
