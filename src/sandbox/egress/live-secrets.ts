import type { SecretRule } from "../../../contracts/types.js";
import type { FetchContext, SecretBroker } from "./secret-broker.js";
import { isFor } from "./secret-rules.js";
import type { OpenSecrets } from "./secrets.js";

/** What is different since other secrets are used. */
interface AppliedSecrets {
  /** The placeholders, by the names of their variables. */
  readonly env: Readonly<Record<string, string>>;
  /** The variables that are no more. */
  readonly gone: string[];
  /** Whether a host had a secret that was removed or changed. Its value is not known any more, and can't be masked in an answer. */
  isRevoked(host: string, port: number): boolean;
}

/** Other secrets that were fetched. One of the two must be called. */
interface PreparedSecrets {
  /** The names that they belong to. */
  readonly hosts: readonly string[];
  /** Uses them from now on, and forgets the others. */
  apply(): AppliedSecrets;
  /** Forgets them. */
  discard(): void;
}

/** The secrets of an open sandbox, which may change. Their code is loaded when there are any. */
export class LiveSecrets {
  readonly broker: SecretBroker;
  readonly #context: FetchContext;
  #current: OpenSecrets | undefined;

  constructor(context: FetchContext) {
    this.#context = context;
    const current = (): OpenSecrets | undefined => this.#current;
    this.broker = {
      get hosts() {
        return current()?.broker.hosts ?? [];
      },
      changesOf: (...request) => current()?.broker.changesOf(...request),
    };
  }

  /** The placeholders, by the names of their variables. */
  get env(): Readonly<Record<string, string>> {
    return this.#current?.env ?? {};
  }

  /** Fetches the values of other secrets: all of them, or it throws. Nothing changes yet. */
  async prepare(rules: Readonly<Record<string, SecretRule>>, signal?: AbortSignal): Promise<PreparedSecrets> {
    const before = this.#current;
    const { openSecrets } = await import("./secrets.js");
    const next = await openSecrets(rules, { ...this.#context, signal }, before);
    return {
      hosts: next.broker.hosts,
      apply: () => {
        this.#current = next;
        const kept = new Set([...next.all.values()].map(({ secret }) => secret));
        const revoked = [...(before?.all.values() ?? [])].flatMap(({ secret }) =>
          kept.has(secret) ? [] : secret.hosts,
        );
        before?.close(next);
        return {
          env: next.env,
          gone: Object.keys(before?.env ?? {}).filter((name) => !Object.hasOwn(next.env, name)),
          isRevoked: (host, port) => revoked.some((entry) => isFor(entry, host, port)),
        };
      },
      discard: () => next.close(before),
    };
  }

  /** Forgets the values. */
  close(): void {
    this.#current?.close();
    this.#current = undefined;
  }
}
