import { SandboxError } from "../../../../contracts/errors.js";
import type { NetworkPolicy, NetworkRules } from "../../../../contracts/types.js";
import { type EgressPolicy, type NetworkEntry, parseAllow, parseRules, widened } from "../policy.js";

const NOTHING: NetworkRules = { allow: [] };

/** The rules of an open sandbox, which a window, `setNetwork` and answers of `onBlocked` change. */
export class LiveRules {
  #rules: NetworkRules | undefined;
  /** What a window lets out besides. */
  #window: readonly NetworkEntry[] | undefined;
  #isChanging = false;
  #turn: Promise<unknown> = Promise.resolve();

  /** Rules that were checked. */
  constructor(rules: NetworkRules | undefined) {
    this.#rules = rules;
  }

  /** What applies now, with an open window. */
  get policy(): EgressPolicy {
    return widened(this.#rules ?? NOTHING, this.#window ?? []);
  }

  /** What applies without a window. */
  get policyWithoutWindow(): EgressPolicy {
    return widened(this.#rules ?? NOTHING, []);
  }

  /** The upstream proxy that they name. */
  get upstream(): string | undefined {
    return this.#rules?.upstream;
  }

  get isOpen(): boolean {
    return this.#window !== undefined;
  }

  /** Opens a window for these names. */
  openWindow(more: readonly string[]): void {
    parseAllow(more);
    if (this.#window !== undefined || this.#isChanging) throw alreadyOpen("The network of the sandbox is already open");
    this.#window = more;
  }

  closeWindow(): void {
    this.#window = undefined;
  }

  /** Replaces the rules, once `apply` has put them in force. */
  async replace(rules: NetworkRules | undefined, apply: (policy: EgressPolicy) => Promise<void>): Promise<void> {
    const policy = parseRules(rules ?? NOTHING, { isHostLoopbackKnown: true });
    if (this.#window !== undefined) throw alreadyOpen("A network window of the sandbox is open");
    if (this.#isChanging) throw alreadyOpen("The network rules of the sandbox are being changed");
    this.#isChanging = true;
    try {
      await this.inTurn(async () => {
        await apply(policy);
        this.#rules = rules;
      });
    } finally {
      this.#isChanging = false;
    }
  }

  /** Adds an entry that somebody allowed, and records it. In a window of a sandbox without network, it lasts as long as the window. */
  async add(
    entry: NetworkEntry,
    save: (network: NetworkPolicy) => Promise<void>,
    apply: (policy: EgressPolicy) => void,
  ): Promise<void> {
    await this.inTurn(async () => {
      if (this.#rules !== undefined) {
        const rules = { ...this.#rules, allow: [...this.#rules.allow, entry] };
        await save(rules);
        this.#rules = rules;
      } else if (this.#window !== undefined) this.#window = [...this.#window, entry];
      apply(this.policy);
    });
  }

  /** One change after the other: none is lost. `work` gets the network that applies without a window. */
  async inTurn<T>(work: (network: NetworkPolicy) => Promise<T>): Promise<T> {
    const start = (): Promise<T> => work(this.#rules ?? "none");
    const turn = this.#turn.then(start, start);
    this.#turn = turn.catch(() => undefined);
    return await turn;
  }
}

function alreadyOpen(message: string): SandboxError {
  return new SandboxError("conflict", message, { retryable: false, hint: "wait until that is done" });
}
