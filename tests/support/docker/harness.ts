import { readdirSync } from "node:fs";
import { sandboxesDir } from "../../../src/machine/home.js";
import { homeMark } from "../../../src/machine/owner-mark.js";
import { engineOf } from "../../../src/sandbox/backends/docker/engine/engines.js";
import { HOME_LABEL, SANDBOX_LABEL } from "../../../src/sandbox/backends/docker/labels.js";
import { createDockerSandbox, docker } from "../../../src/sandbox/backends/docker.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { removeSandbox } from "../../../src/sandbox.js";
import type { ConformanceHarness } from "../../../src/testing.js";

/** Everything of Glovebox on the engine that belongs to the ledger of this test, and what is in the ledger. */
export async function dockerCensus(): Promise<string[]> {
  const engine = engineOf();
  const filters = { label: [SANDBOX_LABEL, `${HOME_LABEL}=${homeMark()}`] };
  const containers = await engine.call<{ Id: string }[]>("GET", "/containers/json", { query: { all: true, filters } });
  const images = await engine.call<{ Id: string }[]>("GET", "/images/json", { query: { all: true, filters } });
  const networks = await engine.call<{ Id: string }[]>("GET", "/networks", { query: { filters } });
  return [...[...containers, ...images, ...networks].map(({ Id }) => Id), ...readdirSync(sandboxesDir())];
}

/** Where the engine keeps what was written to the work directory. */
async function upperDirectory({ id, workDir }: Sandbox): Promise<string> {
  const path = `/containers/glovebox-${id}/json`;
  const { GraphDriver } = await engineOf().call<{ GraphDriver: { Data: { UpperDir: string } } }>("GET", path);
  return `${GraphDriver.Data.UpperDir}${workDir}`;
}

/** The docker backend as the conformance kit sees it. */
export function createDockerHarness(name: string, defaults: () => SandboxOptions): ConformanceHarness {
  const places = new Map<string, string>();
  return {
    backend: name,
    skips: docker.conformance?.skips ?? {},
    async open(opts = {}) {
      const sandbox = await createDockerSandbox(opts.id === undefined ? { ...defaults(), ...opts } : opts);
      places.set(sandbox.id, await upperDirectory(sandbox));
      return sandbox;
    },
    remove: removeSandbox,
    census: dockerCensus,
    host: {
      sharesNetwork: false,
      directoryOf: ({ id }) => places.get(id),
      async sever({ id }) {
        await engineOf().call("POST", `/containers/glovebox-${id}/kill`);
      },
    },
  };
}
