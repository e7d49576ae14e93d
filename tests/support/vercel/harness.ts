import { existsSync } from "node:fs";
import { runtimeDir } from "../../../src/machine/home.js";
import { createVercelSandbox, vercel } from "../../../src/sandbox/backends/vercel.js";
import type { Sandbox } from "../../../src/sandbox/types.js";
import { removeSandbox } from "../../../src/sandbox.js";
import type { ConformanceHarness } from "../../../src/testing.js";
import type { FakeVercel } from "../../fakes/vercel/server.js";

/** The Vercel backend as the conformance kit sees it, on a service of ours. */
export function createVercelHarness(service: () => FakeVercel): ConformanceHarness {
  const opened: Sandbox[] = [];
  return {
    backend: "vercel",
    skips: {
      ...vercel.conformance?.skips,
      ...(process.getuid?.() === 0 ? {} : { "user.switch": "only root can give a command another user here" }),
    },
    async open(opts = {}) {
      const sandbox = await createVercelSandbox({ ...opts, vercel: service().options });
      opened.push(sandbox);
      return sandbox;
    },
    remove: removeSandbox,
    census: async () => [
      ...service().census(),
      ...opened.map(({ id }) => runtimeDir(id)).filter((path) => existsSync(path)),
    ],
    host: { sharesNetwork: true, hasHttpPorts: true, sever: ({ id }) => service().stopMachine(id) },
  };
}

/** Why nothing runs at the service itself, where money is asked for; undefined when it does. */
export function whyNotAtVercel(env: Readonly<Record<string, string | undefined>>): string | undefined {
  if (env["GLOVEBOX_LIVE"] === "1" && (env["VERCEL_OIDC_TOKEN"] || env["VERCEL_TOKEN"])) return undefined;
  return "not run: GLOVEBOX_LIVE=1 and credentials of Vercel are needed";
}
