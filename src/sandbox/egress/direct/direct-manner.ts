import { type ClientHello, readHello } from "../client-hello.js";
import type { ClientStream } from "../client-stream.js";
import { normalizeHost } from "../host-name.js";
import { blockedHost, Refusal, toAnswer } from "../refusal.js";
import { readHead } from "../request-head.js";
import { directTarget } from "../request-target.js";
import type { Manner } from "./manner.js";

/** The listener in the sandbox that a program connected to. */
export interface DirectPlace {
  readonly port: number;
  /** The host, if what the program sends need not name it. */
  readonly host?: string | undefined;
}

const NOTHING = Buffer.alloc(0);
/** The alerts of TLS. */
const ALERT = { accessDenied: 49, internalError: 80, unrecognizedName: 112 } as const;

/** A program of which nothing is known yet. It gets no answer. */
export const SILENT_MANNER: Manner = { established: NOTHING, refuse: () => NOTHING, read: async () => undefined };

/** Finds out how a program that knows no proxy says which host it wants: by the name in its TLS hello, by the Host of its request, or not at all. */
export async function directManner(client: ClientStream, place: DirectPlace): Promise<Manner> {
  const { port, host } = place;
  if (host !== undefined) {
    const target = { kind: "tunnel", host, port, path: "" } as const;
    return { ...SILENT_MANNER, read: async () => ({ head: undefined, target }) };
  }
  const hello = await readFirst(client);
  if (hello === undefined) return SILENT_MANNER;
  return hello.kind === "other" ? byRequest(client, port) : byHello(hello, port);
}

function byRequest(client: ClientStream, port: number): Manner {
  return {
    established: NOTHING,
    refuse: toAnswer,
    async read() {
      const head = await readHead(client);
      return head && { head, target: directTarget(head, port) };
    },
  };
}

function byHello(hello: ClientHello, port: number): Manner {
  return {
    established: NOTHING,
    refuse: toAlert,
    async read() {
      const name = hello.kind === "named" ? hello.name : "";
      const host = normalizeHost(name);
      if (host === undefined) {
        const shown = name === "" ? "a server without a name" : name;
        throw new Refusal(400, "the TLS hello names no host", blockedHost(shown, port, "unnamed"));
      }
      return { head: undefined, target: { kind: "tunnel", host, port, path: "" } };
    },
  };
}

/** Reads a whole TLS hello, or enough to know that it is none, and gives it back; undefined when the program closes first. */
async function readFirst(client: ClientStream): Promise<ClientHello | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for (let atLeast = 1; ; ) {
    const chunk = await client.read();
    if (chunk === undefined) return undefined;
    chunks.push(chunk);
    length += chunk.length;
    if (length < atLeast) continue;
    const bytes = Buffer.concat(chunks);
    const hello = readHello(bytes);
    if (hello.kind !== "more") {
      client.unread(bytes);
      return hello;
    }
    atLeast = hello.atLeast;
  }
}

/** A fatal alert, by which the program's own TLS explains why it got no connection. */
function toAlert({ status }: Refusal): Buffer {
  const alert = status === 400 ? ALERT.unrecognizedName : status === 403 ? ALERT.accessDenied : ALERT.internalError;
  return Buffer.from([21, 3, 3, 0, 2, 2, alert]);
}
