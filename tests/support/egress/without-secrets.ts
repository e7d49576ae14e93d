import { LiveSecrets } from "../../../src/sandbox/egress/live-secrets.js";
import type { EgressOptions } from "../../../src/sandbox/egress/open-egress.js";

/** What a way out without secrets and rules for requests is opened with. */
export function withoutSecrets(): Pick<EgressOptions, "trust" | "secrets"> {
  return {
    trust: { made: undefined, folder: "/nowhere", install: async () => undefined },
    secrets: new LiveSecrets({ visible: [], network: () => "none" }),
  };
}
