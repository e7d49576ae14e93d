import type { IncomingMessage, ServerResponse } from "node:http";

/** What goes wrong instead of, or after, an answer. */
export type Fault =
  /** This answer, and nothing is done. */
  | { status: number; code?: string; message?: string; retryAfter?: number }
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

/** Faults that are switched on for requests, by method and path. */
export class Faults {
  readonly #rules: Rule[] = [];

  /** The next so many requests like `POST /v2/…/cmd` go wrong. */
  add(match: RegExp, fault: Fault, times = 1): void {
    this.#rules.push({ match, fault, left: times });
  }

  clear(): void {
    this.#rules.length = 0;
  }

  take(line: string): Fault | undefined {
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
  response.end(JSON.stringify({ error: { code: fault.code ?? "error", message: fault.message ?? "a fault" } }));
  return true;
}
