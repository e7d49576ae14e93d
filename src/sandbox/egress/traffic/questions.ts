import type { BlockedAnswer, BlockedRequest } from "../../../../contracts/types.js";
import type { NetworkEntry } from "../policy.js";

/** Questions that may wait for an answer at the same time: the program inside decides how many hosts there are. */
const MAX_PENDING = 16;

/** Who is asked about what the rules do not allow. */
export interface Asking {
  ask(request: BlockedRequest): BlockedAnswer | Promise<BlockedAnswer>;
  /** Whether an entry could allow it. If not, nobody is asked. */
  canAllow(entry: NetworkEntry): Promise<boolean>;
  /** Adds an entry to the rules. If that fails, the request is refused. */
  allow(entry: NetworkEntry): Promise<void>;
  /** Milliseconds to the answer. */
  timeout: number;
}

/** Something that the rules do not allow. */
export interface OpenQuestion {
  readonly request: BlockedRequest;
  /** What would allow it for good. Undefined: no entry can, so it passes once at most. */
  readonly entry: NetworkEntry | undefined;
  /** An entry that would allow it with much else. Undefined: nothing can allow it. */
  readonly most: NetworkEntry | undefined;
  /** Whether the rules allow it by now. */
  isAllowed(): boolean | Promise<boolean>;
}

interface Pending {
  readonly request: BlockedRequest;
  readonly answer: Promise<BlockedAnswer>;
}

/** Asks one question per host and port at a time. What is no clear and timely answer is a refusal. */
export class Questions {
  readonly #asking: Asking;
  readonly #pending = new Map<string, Pending>();

  constructor(asking: Asking) {
    this.#asking = asking;
  }

  /** The answer for one connection or request. */
  async put({ request, entry, most, isAllowed }: OpenQuestion): Promise<BlockedAnswer> {
    const key = `${request.host} ${request.port}`;
    const needed = entry ?? most;
    if (needed === undefined || !(await this.#asking.canAllow(needed))) return "deny";
    for (let earlier = this.#pending.get(key); earlier !== undefined; earlier = this.#pending.get(key)) {
      const answer = await earlier.answer;
      if (await isAllowed()) return "allow";
      if (answer === "deny" && isSame(earlier.request, request)) return "deny";
      // It passed once, or was another request: this one is asked about on its own.
    }
    if (this.#pending.size >= MAX_PENDING) return "deny";
    const answer = this.#ask(request, entry).finally(() => this.#pending.delete(key));
    this.#pending.set(key, { request, answer });
    return await answer;
  }

  async #ask(request: BlockedRequest, entry: NetworkEntry | undefined): Promise<BlockedAnswer> {
    const { ask, allow, timeout } = this.#asking;
    let timer: NodeJS.Timeout | undefined;
    const expired = new Promise<"deny">((resolve) => {
      timer = setTimeout(() => resolve("deny"), timeout);
    });
    try {
      const asked = Promise.resolve().then(() => ask(request));
      const answer = await Promise.race([asked, expired]);
      if (answer === "allow" && entry !== undefined) await allow(entry);
      return answer === "allow" || answer === "allow-once" ? answer : "deny";
    } catch {
      return "deny";
    } finally {
      clearTimeout(timer);
    }
  }
}

function isSame(one: BlockedRequest, other: BlockedRequest): boolean {
  return one.reason === other.reason && one.method === other.method && one.path === other.path;
}
