import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runtimeDir } from "../../../src/machine/home.js";
import { createLocalSandbox, local } from "../../../src/sandbox/backends/local.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { removeSandbox } from "../../../src/sandbox.js";
import type { ConformanceHarness } from "../../../src/testing.js";
import { descendants } from "../processes/descendants.js";

/** The local backend as the conformance kit sees it, with all that this machine can tell about it. */
export function createLocalHarness(name: string, defaults: () => SandboxOptions): ConformanceHarness {
  const opened: Sandbox[] = [];
  return {
    backend: name,
    skips: local.conformance?.skips ?? {},
    async open(opts = {}) {
      const sandbox = await createLocalSandbox(opts.id === undefined ? { ...defaults(), ...opts } : opts);
      opened.push(sandbox);
      return sandbox;
    },
    async remove(id) {
      await removeSandbox(id);
    },
    async census() {
      const places = opened.flatMap(({ id, hostDir, workDir }) => [
        hostDir ?? workDir,
        runtimeDir(id),
        ...controlGroups(id),
      ]);
      return [...places.filter((path) => existsSync(path)), ...descendants(process.pid).map(commandLine)];
    },
    host: {
      directoryOf: ({ hostDir }) => hostDir,
      sharesNetwork: true,
      async sever({ workDir }) {
        const guest = descendants(process.pid).find(
          (pid) => /\0serve\0/.test(commandLine(pid)) && commandLine(pid).includes(workDir),
        );
        if (guest === undefined) throw new Error(`no guest serves ${workDir}`);
        process.kill(guest, "SIGKILL");
      },
    },
  };
}

function controlGroups(id: string): string[] {
  const root = "/sys/fs/cgroup";
  if (!existsSync(root)) return [];
  return ["", ...readdirSync(root)].map((controller) => join(root, controller, "glovebox", id));
}

function commandLine(pid: number): string {
  try {
    return `process ${pid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8")}`;
  } catch {
    return `process ${pid}`;
  }
}
