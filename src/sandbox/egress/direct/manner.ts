import type { ClientStream } from "../client-stream.js";
import { type Refusal, toAnswer } from "../refusal.js";
import { type RequestHead, readHead } from "../request-head.js";
import { type RequestTarget, targetOf } from "../request-target.js";
import { ESTABLISHED } from "../tunnel.js";

/** What a program asks for. */
export interface Asked {
  target: RequestTarget;
  /** Of a request; a tunnel has none that matters. */
  head: RequestHead | undefined;
}

/** How a program says where it wants to go, and how it is answered. */
export interface Manner {
  /** Reads what it asks for; undefined when it closes without asking. May throw a `Refusal`. */
  read(): Promise<Asked | undefined>;
  /** What it gets before the first byte of its tunnel. */
  readonly established: Buffer;
  /** What it gets when it is refused. */
  refuse(refusal: Refusal): Buffer;
}

/** A program that knows the proxy: it sends the head of a request, which may be CONNECT. */
export function proxyManner(client: ClientStream): Manner {
  return {
    established: ESTABLISHED,
    refuse: toAnswer,
    async read() {
      const head = await readHead(client);
      return head && { head, target: targetOf(head) };
    },
  };
}
