import type { Authority } from "../authority.js";
import type { EgressPolicy } from "../policy.js";
import type { Inspector } from "../proxy.js";
import type { SecretBroker } from "../secret-broker.js";

/** Decides for which hosts the proxy ends TLS, and what it does with their requests. */
export function createInspector(opts: {
  /** Undefined: there is none, and no host of a secret or with rules for requests either. */
  authority(): Authority | undefined;
  /** The rules at the time of a request. */
  policy(): EgressPolicy;
  broker?: SecretBroker | undefined;
  /** The authorities that a host's own certificate may come from. Undefined: those of Node. */
  ca?: readonly string[] | undefined;
}): Inspector {
  const { policy, broker, ca } = opts;
  /** A port of a secret's host at which a rule wants something other than TLS, and no secret is used. */
  const isOnlyPlain = (host: string, port: number): boolean =>
    policy().isPlain(host, port) && broker?.changesOf(host, port, "GET") === undefined;
  return {
    inspectionOf(host, port) {
      const isBrokered = broker?.hosts.some((name) => isNamed(name, host)) === true && !isOnlyPlain(host, port);
      const authority = isBrokered || policy().isInspected(host, port) ? opts.authority() : undefined;
      if (authority === undefined) return undefined;
      return {
        context: authority.contextFor(host),
        ca,
        check: (request) => policy().checkRequest(host, port, request),
        changesOf: (method, useSecret) => broker?.changesOf(host, port, method, useSecret),
      };
    },
  };
}

function isNamed(name: string, host: string): boolean {
  return name.startsWith("*.") ? host.endsWith(name.slice(1)) : host === name;
}
