import type { Trust } from "../authority.js";
import type { ProxyInternals } from "../proxy.js";

/** Only tests change it, since they have no public host to reach. No option of a sandbox leads here. */
export const egressInternals: ProxyInternals & {
  trust?: () => Trust;
  /** The authorities that the hosts' own certificates may come from, as PEM. */
  ca?: readonly string[];
  /** In the place of those of the process: HTTPS_PROXY and its like. */
  variables?: NodeJS.ProcessEnv;
} = {};

/** The variables that name the user's own proxies. Where the internet is a test's own, the proxies of the machine don't lead there. */
export function hostVariables(): NodeJS.ProcessEnv {
  return egressInternals.variables ?? (egressInternals.route === undefined ? process.env : {});
}
