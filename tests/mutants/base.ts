import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { LocalDriver } from "../../src/sandbox/backends/local/driver.js";
import { plainEnv } from "../../src/sandbox/backends/local/plain-env.js";
import { localCapabilities } from "../../src/sandbox/backends/local.js";
import { startPlainGuest } from "../../src/sandbox/jail/start-guest.js";
import { validateSandboxOptions } from "../../src/sandbox/lifecycle/options.js";
import type { Driver } from "../../src/sandbox/types.js";
import { createSandbox } from "../../src/sandbox.js";
import type { ConformanceHarness } from "../../src/testing.js";
import { descendants } from "../support/processes/descendants.js";
import type { Mutant } from "./mutant.js";

/** The driver that the mutants break: the local one without isolation, which passes every case that is run here. */
async function openBase(): Promise<Driver> {
  const place = await realpath(await mkdtemp(join(tmpdir(), "glovebox-mutant-")));
  const workDir = await mkdtemp(join(place, "work-"));
  return new LocalDriver({
    id: basename(place),
    workDir,
    capabilities: { ...localCapabilities("none"), snapshot: "none" },
    baseEnv: plainEnv(place),
    guest: await startPlainGuest(workDir, []),
    cgroups: [],
    tree: () => undefined as never,
    operations: () => ({ settled: async () => undefined }),
    keeps: () => false,
    close: () => rm(place, { recursive: true, force: true }),
  });
}

/** The kit's way to a mutant, or to the base when none is given; `cleanUp` takes away what a mutant left. */
export function createMutantHarness(mutant?: Mutant): ConformanceHarness & { cleanUp(): Promise<void> } {
  const opened: { driver: Driver; guest: number | undefined }[] = [];
  const guestOf = (workDir: string): number | undefined =>
    descendants(process.pid).find((pid) => commandLine(pid).endsWith(`\0serve\0${workDir}\0`));
  return {
    backend: mutant?.name ?? "base",
    async open(opts = {}) {
      validateSandboxOptions(opts);
      const driver = await openBase();
      opened.push({ driver, guest: guestOf(driver.workDir) });
      const sandbox = createSandbox(mutant?.driver?.(driver) ?? driver, opts);
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
      for (const { driver } of opened.splice(0)) await driver.close();
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
