import { existsSync } from "node:fs";
import { runtimeDir } from "../../../src/machine/home.js";
import { daytona as backend, createDaytonaSandbox } from "../../../src/sandbox/backends/daytona.js";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { removeSandbox } from "../../../src/sandbox.js";
import type { ConformanceHarness } from "../../../src/testing.js";
import type { FakeDaytona } from "../../fakes/daytona/server.js";

/** The Daytona backend on a service of this machine, as the conformance kit sees it. */
export function createDaytonaHarness(
  name: string,
  service: FakeDaytona,
  defaults: () => SandboxOptions = () => ({}),
): ConformanceHarness {
  const opened: Sandbox[] = [];
  const daytona = { apiUrl: service.apiUrl, apiKey: service.apiKey };
  return {
    backend: name,
    skips: backend.conformance?.skips ?? {},
    async open(opts = {}) {
      const sandbox = await createDaytonaSandbox({ daytona, ...(opts.id === undefined ? defaults() : {}), ...opts });
      opened.push(sandbox);
      return sandbox;
    },
    async remove(id) {
      await removeSandbox(id);
    },
    async census() {
      const records = opened.map(({ id }) => runtimeDir(id)).filter((path) => existsSync(path));
      const machines = [...service.sandboxes.values()].map((entry) => entry.machine.root);
      return [...records, ...service.sandboxes.keys(), ...service.snapshots.keys(), ...machines];
    },
    host: {
      directoryOf: ({ id }) => service.entry(`glovebox-${id}`).machine.root,
      sharesNetwork: true,
      hasHttpPorts: true,
      async sever({ id }) {
        const { machine, processes } = service.entry(`glovebox-${id}`);
        await machine.halt();
        processes.cutFollowers();
      },
    },
  };
}
