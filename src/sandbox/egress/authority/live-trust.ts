import type { Authority } from "./make-authority.js";
import { makeTrust, type Trust } from "./trust.js";
import type { TrustPaths } from "./trust-paths.js";

/** Where the programs of a sandbox find the authority that they trust. */
export interface TrustPlace {
  /** What the sandbox was opened with; undefined where the TLS of no host ended at the proxy then. */
  readonly made: Trust | undefined;
  /** The folder of the sandbox that has its files. */
  readonly folder: string;
  /** Puts others there while the sandbox is open. */
  install(trust: Trust): Promise<void>;
}

/** The authority of an open sandbox. It gets more names as the rules and the secrets do. */
export class LiveTrust {
  readonly #place: TrustPlace;
  #trust: Trust | undefined;

  constructor(place: TrustPlace) {
    this.#place = place;
    this.#trust = place.made;
  }

  get authority(): Authority | undefined {
    return this.#trust?.authority;
  }

  /** Where its files are; undefined if there are none. */
  get paths(): TrustPaths | undefined {
    return this.#trust?.paths(this.#place.folder);
  }

  /** Makes programs that start from now on trust it for these names, too. */
  async cover(names: readonly string[]): Promise<void> {
    const more = [...new Set(names)].filter((name) => this.#trust?.names.includes(name) !== true);
    if (more.length === 0) return;
    const next = this.#trust?.extended(more) ?? makeTrust(more);
    await this.#place.install(next);
    this.#trust = next;
  }
}
