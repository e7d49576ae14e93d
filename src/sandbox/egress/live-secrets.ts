import type { SecretRule } from "../../../contracts/types.js";
import type { FetchContext, SecretBroker } from "./secret-broker.js";
import type { OpenSecrets } from "./secrets.js";

/** Other secrets that were fetched. One of the two must be called. */
interface PreparedSecrets {
  /** The names that they belong to. */
  readonly hosts: readonly string[];
  /** Uses them from now on. Gives the placeholders, and the variables that are no more. */
  apply(): { env: Readonly<Record<string, string>>; gone: string[] };
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
        before?.close(next);
        return { env: next.env, gone: Object.keys(before?.env ?? {}).filter((name) => !Object.hasOwn(next.env, name)) };
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
