import { existsSync, readdirSync } from "node:fs";
import { conformance, createDaggerSandbox } from "../../src/sandbox/dagger.js";
import { runtimeDir } from "../../src/sandbox/home.js";
import type { Sandbox, SandboxOptions } from "../../src/sandbox/types.js";
import { removeSandbox } from "../../src/sandbox.js";
import type { ConformanceHarness } from "../../src/testing.js";
import { descendants } from "./descendants.js";

/** The Dagger backend as the conformance kit sees it; what the fake engine runs are children of this process. */
export function createDaggerHarness(name: string, defaults: () => SandboxOptions): ConformanceHarness {
  const opened: Sandbox[] = [];
  return {
    backend: name,
    skips: conformance.skips ?? {},
    async open(opts = {}) {
      const sandbox = await createDaggerSandbox({ ...defaults(), ...opts });
      opened.push(sandbox);
      return sandbox;
    },
    async remove(id) {
      await removeSandbox(id);
    },
    async census() {
      const places = opened.map(({ id }) => runtimeDir(id)).filter((path) => existsSync(path));
      return [...places.flatMap((path) => readdirSync(path)), ...descendants(process.pid).map(String)];
    },
    host: { sharesNetwork: true },
  };
}
