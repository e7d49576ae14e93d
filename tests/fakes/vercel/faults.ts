import type { IncomingMessage, ServerResponse } from "node:http";

/** What goes wrong instead of, or after, an answer. */
export type Fault =
  /** This answer, and nothing is done. */
  | {
      status: number;
      code?: string;
      message?: string;
      retryAfter?: number;
      details?: Readonly<Record<string, unknown>>;
    }
  /** The connection is reset, and nothing is done. */
  | "reset"
  /** It is done, but the connection is reset before the answer. */
  | "reset-after"
  /** A stream of logs is cut off after its first line. */
  | "cut"
  /** A stream of logs ends cleanly after its first line. */
  | "early-end";

interface Rule {
  readonly match: RegExp;
  readonly fault: Fault;
  left: number;
}

/** Until when requests like these are too many. */
interface Limit {
  readonly match: RegExp;
  readonly until: number;
}

/** Faults that are switched on for requests, by method and path. */
export class Faults {
  readonly #rules: Rule[] = [];
  readonly #limits: Limit[] = [];

  /** The next so many requests like `POST /v2/…/cmd` go wrong. */
  add(match: RegExp, fault: Fault, times = 1): void {
    this.#rules.push({ match, fault, left: times });
  }

  /** For so many seconds every request like this is one too many, and is told how long to wait. */
  limit(match: RegExp, seconds: number): void {
    this.#limits.push({ match, until: Date.now() + seconds * 1_000 });
  }

  clear(): void {
    this.#rules.length = 0;
    this.#limits.length = 0;
  }

  take(line: string): Fault | undefined {
    const limit = this.#limits.find(({ match, until }) => until > Date.now() && match.test(line));
    if (limit !== undefined) {
      const retryAfter = Math.ceil((limit.until - Date.now()) / 1_000);
      return { status: 429, code: "rate_limited", message: "Too many requests", retryAfter };
    }
    const rule = this.#rules.find(({ match, left }) => left > 0 && match.test(line));
    if (rule === undefined) return undefined;
    rule.left -= 1;
    return rule.fault;
  }
}

/** Does what a fault says before the request is looked at; true when that was all. */
export function answerFault(fault: Fault | undefined, request: IncomingMessage, response: ServerResponse): boolean {
  if (fault === "reset") {
    request.socket.resetAndDestroy();
    return true;
  }
  if (typeof fault !== "object") return false;
  const headers = fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) };
  response.writeHead(fault.status, { "content-type": "application/json", ...headers });
  const { code = "error", message = "a fault", details } = fault;
  response.end(JSON.stringify({ error: { code, message, ...details } }));
  return true;
}
