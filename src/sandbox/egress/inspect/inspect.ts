import type { SecureContext, TLSSocket } from "node:tls";
import { ClientStream } from "../client-stream.js";
import { finish } from "../finish.js";
import { forward, type Passage, type Rewriting } from "../forward.js";
import type { Lifetime } from "../lifetime.js";
import type { RequestFacts } from "../policy.js";
import { type BlockReason, blockedHost, Refusal, toAnswer } from "../refusal.js";
import { type RequestHead, readHead } from "../request-head.js";
import { innerTarget, type RequestTarget } from "../request-target.js";
import { type Exchange, readOpening } from "../tunnel.js";
import { endTls, insideTls } from "./end-tls.js";
import { OriginAgent } from "./origin-agent.js";

/** How a connection ends that a program has cut. In the handshake OpenSSL has a code of its own for it. */
const CUT: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_SSL_UNEXPECTED_EOF_WHILE_READING",
]);

/** What is needed to look at the requests to a host. */
export interface Inspection {
  /** The key and certificate that the proxy shows in the place of the host. */
  readonly context: SecureContext;
  /** The authorities that the host's own certificate may come from, as PEM. Undefined: those of Node. */
  readonly ca: readonly string[] | undefined;
  /** Milliseconds. */
  readonly limits: { head: number; response: number; idle: number; linger: number };
  /** Throws a `Refusal` for a request that the rules do not allow. */
  check(request: RequestFacts): void | Promise<void>;
  /** A request that may pass is under way. The function that it gives is called when it is over. */
  begin(request: RequestFacts): () => void;
  /** What changes in a request that they allow; undefined if nothing. `useSecret` gets the name of each secret whose value is put into it. */
  changesOf(method: string, useSecret: (name: string) => void): Rewriting | undefined;
}

/** Serves the requests in the TLS of a tunnel. Nothing is sent to the host before one of them is allowed. */
export async function inspect(exchange: Exchange, target: RequestTarget, inspection: Inspection): Promise<void> {
  const { client, life } = exchange;
  await client.write(exchange.established);
  const late = (): Error => new Error("the TLS hello took too long");
  const first = await life.within(readOpening(exchange, target, false), inspection.limits.head, late);
  if (first.length === 0) return;
  client.unread(first);
  const socket = await secure(exchange, target, inspection);
  if (socket.alpnProtocol === "h2") {
    await inspectStreams(exchange, target, inspection, socket);
    return;
  }
  const inner = new ClientStream(insideTls(socket), life);
  try {
    const head = await firstHead(inner, life, inspection.limits.head);
    if (head === undefined) reportBrokenOff(exchange, target);
    else await serveRequests({ ...exchange, client: inner }, target, inspection, head);
  } catch (error) {
    if (!(error instanceof Refusal)) {
      reportAlert(exchange, target, error);
      throw error;
    }
    if (error.blocked) exchange.report(error.blocked);
    await inner.write(toAnswer(error));
  }
  await finish(inner, life, inspection.limits.linger);
}

async function secure(exchange: Exchange, target: RequestTarget, { context, limits }: Inspection): Promise<TLSSocket> {
  const { client, life } = exchange;
  try {
    return await endTls(client, life, context, limits.head);
  } catch (error) {
    reportFailure(exchange, target, error);
    throw error;
  }
}

/** Reports a TLS connection that ended without a request. */
function reportFailure(exchange: Exchange, target: RequestTarget, error: unknown): void {
  if (CUT.has((error as NodeJS.ErrnoException).code ?? "")) reportBrokenOff(exchange, target);
  else reportAlert(exchange, target, error);
}

/** Reports a program that says by an alert why it broke off: in the handshake, or after it, where some look at the certificate only then. */
function reportAlert({ report }: Exchange, { host, port }: RequestTarget, error: unknown): void {
  const reason = reasonOf((error as NodeJS.ErrnoException).code ?? "");
  if (reason !== undefined) report(blockedHost(host, port, reason));
}

function reasonOf(code: string): BlockReason | undefined {
  if (/APPLICATION_PROTOCOL/.test(code)) return "not_http";
  return /ALERT_.*(?:CA|CERTIFICATE|CERT)/.test(code) ? "not_trusted" : undefined;
}

async function serveRequests(
  exchange: Exchange,
  target: RequestTarget,
  inspection: Inspection,
  first: RequestHead,
): Promise<void> {
  const { limits, ca } = inspection;
  const { life, route } = exchange;
  const origin = { dial: exchange.dial, ca, timeout: route.connectTimeout };
  const agent = new OriginAgent(target, origin, life);
  for (let head: RequestHead | undefined = first; head; head = await nextHead(exchange.client, life, limits.idle)) {
    const request = innerTarget(head, target);
    const end = await begin(inspection, head, request);
    try {
      const changes = writtenDown(exchange, head.method, inspection);
      const passage: Passage = {
        ...{ via: { agent }, usualPort: 443, timeout: limits.response, patience: limits.head },
        ...(changes && { changes }),
      };
      if (!(await forward(exchange, head, request, passage))) return;
    } finally {
      end();
    }
  }
}

/** Serves a program that speaks nothing but HTTP/2, as those of gRPC, by the same rules. */
async function inspectStreams(
  exchange: Exchange,
  target: RequestTarget,
  inspection: Inspection,
  socket: TLSSocket,
): Promise<void> {
  const { forwardStream, OriginSession, readStreamHead, serveHttp2 } = await import("./http2.js");
  const { life, route } = exchange;
  let failure: Error = Object.assign(new Error("the program closed it"), { code: "ECONNRESET" });
  socket.once("error", (error) => {
    failure = error;
  });
  const { ca, limits } = inspection;
  const origin = new OriginSession(target, { dial: exchange.dial, ca, timeout: route.connectTimeout }, life);
  const taken = await serveHttp2(socket, { life, ...limits }, async (stream, list) => {
    let end: (() => void) | undefined;
    try {
      const head = readStreamHead(list);
      const request = innerTarget(head, target);
      end = await begin(inspection, head, request);
      const changes = writtenDown(exchange, head.method, inspection);
      const { response: timeout, linger } = limits;
      await forwardStream(stream, head, request, { life, origin, timeout, linger, changes });
    } catch (error) {
      if (error instanceof Refusal && error.blocked) exchange.report(error.blocked);
      throw error;
    } finally {
      end?.();
    }
  });
  if (taken === 0) reportFailure(exchange, target, failure);
}

/** Checks a request, which is under way from then on. Gives the function to call when it is over. */
async function begin(
  inspection: Inspection,
  { method, headers }: RequestHead,
  { path }: RequestTarget,
): Promise<() => void> {
  const facts = { method, path, headers };
  await inspection.check(facts);
  return inspection.begin(facts);
}

/** What changes in a request. It is written down before it is sent, with the secrets that are known by then. */
function writtenDown({ passing }: Exchange, method: string, inspection: Inspection): Rewriting | undefined {
  const changes = inspection.changesOf(method, (name) => passing?.useSecret(name));
  if (changes === undefined) passing?.request(method);
  if (changes === undefined || passing === undefined) return changes;
  return {
    ...changes,
    async ofRequest(request, body) {
      const changed = await changes.ofRequest(request, body);
      passing.request(method);
      return changed;
    },
  };
}

/** Reports a program that saw the certificate and went away without a word, as those mostly do that pin one. */
function reportBrokenOff({ report }: Exchange, { host, port }: RequestTarget): void {
  report(blockedHost(host, port, "no_request"));
}

/** As `nextHead`; undefined also for a program that has cut the connection. */
async function firstHead(client: ClientStream, life: Lifetime, wait: number): ReturnType<typeof readHead> {
  try {
    return await nextHead(client, life, wait);
  } catch (error) {
    if (CUT.has((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

async function nextHead(client: ClientStream, life: Lifetime, wait: number): ReturnType<typeof readHead> {
  return await life.within(readHead(client), wait, () => new Refusal(408, "the head of the request took too long"));
}
