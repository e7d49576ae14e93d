import { readdirSync } from "node:fs";
import { engineOf } from "../../src/sandbox/docker/engines.js";
import { SANDBOX_LABEL } from "../../src/sandbox/docker/labels.js";
import { conformance, createDockerSandbox } from "../../src/sandbox/docker.js";
import { sandboxesDir } from "../../src/sandbox/home.js";
import type { SandboxOptions } from "../../src/sandbox/types.js";
import { removeSandbox } from "../../src/sandbox.js";
import type { ConformanceHarness } from "../../src/testing.js";

/** Everything of Glovebox on an engine, and in its ledger. */
export async function dockerCensus(): Promise<string[]> {
  const engine = engineOf();
  const filters = { label: [SANDBOX_LABEL] };
  const containers = await engine.call<{ Id: string }[]>("GET", "/containers/json", { query: { all: true, filters } });
  const images = await engine.call<{ Id: string }[]>("GET", "/images/json", { query: { all: true, filters } });
  const networks = await engine.call<{ Id: string }[]>("GET", "/networks", { query: { filters } });
  return [...[...containers, ...images, ...networks].map(({ Id }) => Id), ...readdirSync(sandboxesDir())];
}

/** The docker backend as the conformance kit sees it. */
export function createDockerHarness(name: string, defaults: SandboxOptions): ConformanceHarness {
  return {
    backend: name,
    skips: conformance.skips ?? {},
    open: (opts = {}) => createDockerSandbox(opts.id === undefined ? { ...defaults, ...opts } : opts),
    remove: removeSandbox,
    census: dockerCensus,
    host: {
      sharesNetwork: false,
      async sever({ id }) {
        await engineOf().call("POST", `/containers/glovebox-${id}/kill`);
      },
    },
  };
}
