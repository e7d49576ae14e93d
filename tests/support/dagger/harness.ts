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
  const seen = new Map<string, readonly number[]>();
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
      const processes = await settled(seen.get(places.join()));
      if (!seen.has(places.join())) seen.set(places.join(), processes);
      return [...places.flatMap((path) => readdirSync(path)), ...processes.map(String)];
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

/**
 * What runs. The guest of a closed sandbox ends itself once its connection is gone, and nobody waits for it: where the same sandboxes were open
 * before, what is new since gets half a minute.
 */
async function settled(before: readonly number[] | undefined): Promise<number[]> {
  let found = descendants(process.pid);
  for (let tries = 0; tries < 1500 && before !== undefined && found.some((pid) => !before.includes(pid)); tries++) {
    await delay(20);
    found = descendants(process.pid);
  }
  return found;
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
