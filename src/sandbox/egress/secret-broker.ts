import type { NetworkPolicy } from "../../../contracts/types.js";
import type { Rewriting } from "./forward.js";

/** What is needed to fetch values. */
export interface FetchContext {
  /** Host paths that the sandbox sees. */
  readonly visible: readonly string[];
  /** What the sandbox may reach. Token endpoints are asked by the same way. */
  network(): NetworkPolicy;
}

/** What puts the secrets of a sandbox into requests to the hosts that they belong to. */
export interface SecretBroker {
  /** The names that secrets belong to, with `*.` where they stand for all below. Their TLS ends at the proxy. */
  readonly hosts: readonly string[];
  /**
   * What changes in a request to a host, which the rules allow; undefined where no secret belongs. `useSecret` gets the name of each secret whose value
   * is put in, for the audit log, before `Rewriting.ofRequest` is done; for bodies, of each that is looked for.
   */
  changesOf(host: string, port: number, method: string, useSecret?: (name: string) => void): Rewriting | undefined;
}
