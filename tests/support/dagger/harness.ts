import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { runtimeDir } from "../../../src/machine/home.js";
import { createDaggerSandbox, dagger } from "../../../src/sandbox/backends/dagger.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { removeSandbox } from "../../../src/sandbox.js";
import type { ConformanceHarness } from "../../../src/testing.js";
import { childrenOf, descendants } from "../processes/descendants.js";

/** The Dagger backend as the conformance kit sees it; what the fake engine runs are children of this process. */
export function createDaggerHarness(name: string, defaults: () => SandboxOptions): ConformanceHarness {
  const opened: Sandbox[] = [];
  return {
    backend: name,
    skips: dagger.conformance?.skips ?? {},
    async open(opts = {}) {
      const sandbox = await createDaggerSandbox({ ...defaults(), ...opts });
      opened.push(sandbox);
      return sandbox;
    },
    async remove(id) {
      await removeSandbox(id);
    },
    async census() {
      await endingOnes();
      const places = opened.map(({ id }) => runtimeDir(id)).filter((path) => existsSync(path));
      return [...places.flatMap((path) => readdirSync(path)), ...descendants(process.pid).map(String)];
    },
    host: {
      sharesNetwork: false,
      async sever(sandbox) {
        const { stdout } = await sandbox.exec({ argv: ["readlink", "/proc/self/ns/pid"] });
        const guest = descendants(process.pid).find((pid) => isGuest(pid) && namespaceOf(pid) === stdout.trim());
        if (guest === undefined) throw new Error(`no guest serves ${sandbox.id}`);
        process.kill(guest, "SIGKILL");
      },
    },
  };
}

/** A container of the fake engine is gone a moment after its first process: waits for those without one, half a minute at most. */
async function endingOnes(): Promise<void> {
  const isEnding = (pid: number): boolean => childrenOf(pid).length === 0;
  for (let tries = 0; tries < 1500 && childrenOf(process.pid).some(isEnding); tries++) await delay(20);
}

function isGuest(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("/.glovebox/guest\0dial\0");
  } catch {
    return false;
  }
}

function namespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}
