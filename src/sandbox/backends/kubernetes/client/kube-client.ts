import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxError } from "../../../../../contracts/errors.js";
import { readUpTo } from "../../../../util/read-up-to.js";
import { CallDeadline } from "../../call-deadline.js";
import type { Identity } from "./credentials.js";
import { answerError, connectionError, hasStatus, KubeError } from "./kube-error.js";
import type { ClusterAccess } from "./kubeconfig.js";
import { type KubeObject, type ObjectPlace, pathOf, type ResourceKind } from "./resources.js";
import { type RawRequest, Transport } from "./transport.js";

/** Default deadline of an answer, in milliseconds. */
const PATIENCE = 30_000;
/** How long an API server that has answered before may be away: it is being restarted. */
const OUTAGE = 20_000;
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2_000;
const MAX_ANSWER = 64 << 20;
const MAX_ERROR = 64 << 10;
const PAGE = 500;
/** More than any namespace of ours has: a list that goes on would fill the memory. */
const MOST_OBJECTS = 100_000;

/** What a call may be given. */
export interface KubeCall {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the answer is complete, or until a stream starts, pauses between attempts included. Default 30 s. */
  readonly timeout?: number;
}

/** Which objects of a collection. */
export interface ObjectSelector {
  readonly labels?: string;
  readonly fields?: string;
}

/** How an object is deleted. */
export interface DeleteOptions {
  /** Whether what belongs to it is deleted first (`Foreground`), later, or not at all. Default `Background`. */
  readonly propagation?: "Foreground" | "Background" | "Orphan";
  /** Delete only this one, not a later one of the same name. */
  readonly uid?: string | undefined;
  readonly graceSeconds?: number;
}

type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** A part of a list. */
interface Page<T> {
  readonly items?: readonly T[] | null;
  readonly metadata?: { readonly continue?: string; readonly resourceVersion?: string };
}

function isNamed(object: KubeObject | null): boolean {
  return typeof object?.metadata?.name === "string";
}

/** A request, as the client makes it. */
interface Request {
  readonly method: string;
  readonly path: string;
  readonly query?: Query | undefined;
  readonly body?: object | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client of one cluster's API. */
export class KubeClient {
  readonly access: ClusterAccess;
  readonly #transport: Transport;
  #hasAnswered = false;

  constructor(access: ClusterAccess) {
    this.access = access;
    this.#transport = new Transport(access);
  }

  /** Closes idle connections. Calls in progress continue. */
  close(): void {
    this.#transport.close();
  }

  async get<T extends KubeObject>(kind: ResourceKind, place: ObjectPlace, call: KubeCall = {}): Promise<T> {
    return await this.call<T>({ method: "GET", path: pathOf(kind, place) }, call);
  }

  /** The object; undefined when there is none. */
  async find<T extends KubeObject>(
    kind: ResourceKind,
    place: ObjectPlace,
    call: KubeCall = {},
  ): Promise<T | undefined> {
    try {
      return await this.get<T>(kind, place, call);
    } catch (error) {
      if (hasStatus(error, 404)) return undefined;
      throw error;
    }
  }

  /** All objects of a kind that are selected, however many. */
  async list<T extends KubeObject>(
    kind: ResourceKind,
    place: ObjectPlace,
    selector: ObjectSelector = {},
    call: KubeCall = {},
  ): Promise<{ items: T[]; resourceVersion: string }> {
    const items: T[] = [];
    let from: string | undefined;
    for (;;) {
      const query = { ...selectorQuery(selector), limit: PAGE, continue: from };
      const page = await this.call<Page<T> | null | undefined>(
        { method: "GET", path: pathOf(kind, place), query },
        call,
      );
      const next = page?.metadata?.continue || undefined;
      const found = page?.items ?? [];
      const isList =
        typeof page === "object" && page !== null && Array.isArray(found) && found.every((each) => isNamed(each));
      if (!isList || (next !== undefined && (next === from || items.length > MOST_OBJECTS)))
        throw new KubeError("tampered", `The API server answers with something else than a list of ${kind.plural}`);
      for (const each of found) items.push(each);
      if (next === undefined) return { items, resourceVersion: page.metadata?.resourceVersion ?? "" };
      from = next;
    }
  }

  async create<T extends KubeObject>(
    kind: ResourceKind,
    place: ObjectPlace,
    body: object,
    call: KubeCall = {},
  ): Promise<T> {
    return await this.call<T>({ method: "POST", path: pathOf(kind, place), body }, call);
  }

  /** Changes an object by a JSON merge patch. */
  async patch<T extends KubeObject>(
    kind: ResourceKind,
    place: ObjectPlace,
    body: object,
    call: KubeCall = {},
  ): Promise<T> {
    const headers = { "Content-Type": "application/merge-patch+json" };
    return await this.call<T>({ method: "PATCH", path: pathOf(kind, place), body, headers }, call);
  }

  /** Deletes an object. Returns false if there was none, or only another one of the same name. */
  async delete(kind: ResourceKind, place: ObjectPlace, how: DeleteOptions = {}, call: KubeCall = {}): Promise<boolean> {
    const body = {
      propagationPolicy: how.propagation ?? "Background",
      ...(how.graceSeconds !== undefined && { gracePeriodSeconds: how.graceSeconds }),
      ...(how.uid !== undefined && { preconditions: { uid: how.uid } }),
    };
    try {
      await this.call({ method: "DELETE", path: pathOf(kind, place), body }, call);
      return true;
    } catch (error) {
      const isOther = how.uid !== undefined && hasStatus(error, 409);
      if (isOther || hasStatus(error, 404)) return false;
      throw error;
    }
  }

  /** Makes a call and returns its answer, parsed as JSON. */
  async call<T>(request: Request, call: KubeCall = {}): Promise<T> {
    const what = describe(request);
    return await this.#inTime(what, call, async (deadline) => {
      const answer = await this.#persist(request, what, deadline.signal);
      const { bytes, isWhole } = await readUpTo(answer, MAX_ANSWER, () => answer.destroy());
      if (!isWhole)
        throw new KubeError("limit_exceeded", `Kubernetes answers with more than ${MAX_ANSWER} bytes (${what})`);
      deadline.clear();
      return parseAnswer(bytes, what) as T;
    });
  }

  /** Makes a GET whose answer is a stream. The caller reads it to its end or destroys it. Ends with the caller's signal. */
  async stream(request: Omit<Request, "method">, call: KubeCall = {}): Promise<IncomingMessage> {
    const get = { method: "GET", ...request };
    const what = describe(get);
    return await this.#inTime(what, call, async (deadline) => {
      const answer = await this.#persist(get, what, deadline.signal);
      deadline.started();
      answer.once("close", () => deadline.clear());
      return answer;
    });
  }

  /** Opens a connection that changes to another protocol. It is one request, never repeated once it may have reached the server. */
  async upgrade(
    request: Omit<Request, "method" | "body">,
    call: KubeCall = {},
  ): Promise<{ answer: IncomingMessage; socket: Socket; head: Buffer }> {
    const get = { method: "GET", ...request };
    const what = describe({ ...get, method: "CONNECT" });
    return await this.#inTime(what, call, async (deadline) => {
      const upgraded = await this.#again(what, deadline.signal, false, () => this.#upgrade(get, what, deadline.signal));
      deadline.clear();
      return upgraded;
    });
  }

  async #upgrade(
    { path, query, headers = {} }: Request,
    what: string,
    signal: AbortSignal,
  ): Promise<{ answer: IncomingMessage; socket: Socket; head: Buffer }> {
    const raw: RawRequest = { method: "GET", path: path + queryText(query), headers, signal, isFresh: true };
    const { request, identity } = await this.#transport.start(raw);
    return await new Promise((resolve, reject) => {
      request.on("error", reject);
      request.once("upgrade", (answer, socket: Socket, head: Buffer) => resolve({ answer, socket, head }));
      request.once("response", (answer) => {
        this.#failed(answer, what, identity).then(reject, reject);
      });
      request.end();
    });
  }

  /** Runs a call until its deadline. `work` clears the deadline when it succeeds. */
  async #inTime<T>(what: string, call: KubeCall, work: (deadline: CallDeadline) => Promise<T>): Promise<T> {
    const { timeout = PATIENCE, signal } = call;
    const deadline = new CallDeadline(timeout, signal, {
      late: () => new KubeError("unavailable", `Kubernetes did not answer within ${timeout} ms (${what})`),
      aborted: (cause) => new KubeError("aborted", `Kubernetes: ${what} was aborted`, { cause }),
    });
    try {
      return await work(deadline);
    } catch (error) {
      deadline.clear();
      throw deadline.reason() ?? connectionError(error, this.access.server.origin, what);
    }
  }

  async #persist(request: Request, what: string, signal: AbortSignal): Promise<IncomingMessage> {
    // Our patches say what is to be there, so a second one changes nothing.
    const isRepeatable = request.method !== "POST";
    return await this.#again(what, signal, isRepeatable, async () => {
      const { path, query, body, method, headers = {} } = request;
      const text = body === undefined ? undefined : JSON.stringify(body);
      const { answer, identity } = await this.#transport.send({
        method,
        path: path + queryText(query),
        body: text,
        // Not for an upgrade: the server answers one that accepts JSON only with 406.
        headers: { Accept: "application/json", ...headers },
        signal,
        isFresh: !isRepeatable,
      });
      const { statusCode = 0 } = answer;
      if (statusCode >= 200 && statusCode < 300) {
        this.#hasAnswered = true;
        return answer;
      }
      throw await this.#failed(answer, what, identity);
    });
  }

  /** Repeats what the server has not done: it was not reached, or asked to come back, or the request may be repeated. */
  async #again<T>(what: string, signal: AbortSignal, isRepeatable: boolean, attempt: () => Promise<T>): Promise<T> {
    const started = performance.now();
    let hasRenewed = false;
    for (let round = 0; ; round++) {
      try {
        return await attempt();
      } catch (raw) {
        signal.throwIfAborted();
        const error = connectionError(raw, this.access.server.origin, what);
        if (error instanceof Refused && !hasRenewed) {
          hasRenewed = true;
          continue;
        }
        const isReused = (raw as { wasReused?: boolean }).wasReused === true;
        const pause = this.#pauseAfter(error, round, isRepeatable, isReused);
        const left = OUTAGE - (performance.now() - started);
        if (pause === undefined || (pause > left && !(error as KubeError).retryAfter)) throw error;
        await sleep(pause, undefined, { signal });
      }
    }
  }

  #pauseAfter(error: SandboxError, round: number, isRepeatable: boolean, wasReused: boolean): number | undefined {
    if (!(error instanceof KubeError) || !error.retryable) return undefined;
    const usual = Math.min(FIRST_PAUSE * 2 ** round, LONGEST_PAUSE) * (0.75 + Math.random() / 2);
    // It asks for it. A create that was done nevertheless is a conflict then.
    if (error.retryAfter !== undefined) return error.retryAfter;
    if (error.status === 429) return usual;
    if (error.wasNotSent) return this.#hasAnswered ? usual : undefined;
    // 410: the history that was asked for is gone for good.
    if (!isRepeatable || error.code !== "unavailable" || error.status === 410) return undefined;
    // An idle connection may be cut just when a request starts to use it.
    if (error.status === undefined) return wasReused || this.#hasAnswered ? usual : undefined;
    return this.#hasAnswered ? usual : undefined;
  }

  async #failed(answer: IncomingMessage, what: string, identity: Identity): Promise<KubeError> {
    this.#hasAnswered = true;
    const { statusCode = 0, headers } = answer;
    const { bytes } = await readUpTo(answer, MAX_ERROR, () => answer.destroy()).catch(() => ({
      bytes: Buffer.alloc(0),
    }));
    const error = answerError(what, statusCode, bytes.toString("utf8"), headers["retry-after"]);
    return statusCode === 401 && this.#transport.renew(identity) ? new Refused(error) : error;
  }
}

/** A 401 for credentials that can be renewed. */
class Refused extends KubeError {
  constructor({ message, status, reason, hint }: KubeError) {
    super("unauthenticated", message, { status, reason, hint });
  }
}

function parseAnswer(bytes: Buffer, what: string): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    const hint = "check the server in the kubeconfig: something else than an API server answers there";
    throw new KubeError("internal", `The answer of the API server is not JSON (${what})`, { cause, hint });
  }
}

/** The query for a selector. */
export function selectorQuery({ labels, fields }: ObjectSelector): Query {
  return { labelSelector: labels, fieldSelector: fields };
}

function queryText(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const part of value as string[]) parameters.append(key, part);
    else if (value !== undefined) parameters.set(key, String(value));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

const VERBS: Readonly<Record<string, string>> = {
  GET: "read",
  POST: "create",
  PATCH: "change",
  DELETE: "delete",
  CONNECT: "connect to",
};

/** Names a request in messages, such as `delete jobs/x in the namespace y`. */
function describe({ method, path }: Request): string {
  const [, namespace, resource] = /\/namespaces\/([^/]+)\/(.+)$/.exec(path) ?? [];
  const verb = VERBS[method] ?? method;
  if (namespace !== undefined) return `${verb} ${resource} in the namespace ${namespace}`;
  return `${verb} ${path.replace(/^\/(api\/v1|apis\/[^/]+\/[^/]+)\//, "")}`;
}
