import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Attempt, authenticate, authorize, authorizeUnknown, may, type User } from "./access.js";
import type { Controllers } from "./controllers.js";
import { chooseProtocol, readExec, type Session, serveExec } from "./exec.js";
import { checkFields } from "./fields.js";
import type { Fault, Habits } from "./habits.js";
import { groupOf, isOfAgentSandbox, type Place, placeOf } from "./kinds.js";
import type { Kubelet } from "./kubelet.js";
import { badRequest, forbidden, noSuchResource, notFound, Refusal } from "./refusal.js";
import { checkChange, checkRules } from "./rules.js";
import { selectorOf } from "./selectors.js";
import type { Store, Stored } from "./store.js";
import { answerWatch } from "./watch.js";

const MOST_BODY = 3 << 20;
const VERSION = { major: "1", minor: "36", gitVersion: "v1.36.0", platform: "linux/amd64" };

/** What a server is put together from. */
export interface Parts {
  readonly store: Store;
  readonly kubelet: Kubelet;
  readonly controllers: Controllers;
  readonly habits: Habits;
  readonly users: ReadonlyMap<string, User>;
}

/** Answers the requests of an API server, and notes them. */
export class ApiServer {
  /** Method and path of each request, without its query. */
  readonly requests: string[] = [];
  readonly sessions: Set<Session> = new Set();
  readonly #watches = new Set<() => void>();
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Ends all watches, as a server does that is about to stop. */
  endWatches(): void {
    for (const end of this.#watches) end();
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "https://server");
    const line = `${request.method} ${url.pathname}`;
    this.requests.push(line);
    const fault = this.#faultFor(line);
    if (fault?.then === "reset") return void request.socket.destroy();
    try {
      if (fault !== undefined && typeof fault.then === "object") throw faultAnswer(fault.then, response);
      const body = await readBody(request);
      const answer = this.#answer(request, url, body, response);
      if (fault?.then === "reset after") return void request.socket.destroy();
      if (answer !== undefined) reply(response, answer.status, answer.body);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      reply(response, error.code, error.body);
    }
  }

  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const url = new URL(request.url ?? "/", "https://server");
    this.requests.push(`CONNECT ${url.pathname}`);
    try {
      this.#exec(request, url, socket, head);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const text = JSON.stringify(error.body);
      const lines = [
        `HTTP/1.1 ${error.code} ${error.reason}`,
        "Content-Type: application/json",
        `Content-Length: ${Buffer.byteLength(text)}`,
        "Connection: close",
      ];
      socket.end(`${lines.join("\r\n")}\r\n\r\n${text}`);
    }
  }

  #faultFor(line: string): Fault | undefined {
    const { faults } = this.#parts.habits;
    const at = faults.findIndex(({ when }) => when.test(line));
    return at === -1 ? undefined : faults.splice(at, 1)[0];
  }

  #answer(request: IncomingMessage, url: URL, body: Buffer, response: ServerResponse): Answer | undefined {
    const user = authenticate(this.#parts.users, request.headers.authorization);
    if (url.pathname === "/version") return { status: 200, body: VERSION };
    if (["/readyz", "/livez", "/healthz"].includes(url.pathname)) return { status: 200, body: "ok" };
    const found = placeOf(url.pathname);
    const place = found && isOfAgentSandbox(found.kind) && !this.#parts.habits.hasWarmPools ? undefined : found;
    if (place === undefined) authorizeUnknown(user, url.pathname);
    if (place === undefined || place.subresource !== undefined) return this.#subresource(user, place);
    const { method = "" } = request;
    const isWatch = method === "GET" && ["true", "1"].includes(url.searchParams.get("watch") ?? "");
    const verb = verbOf(method, place, isWatch);
    if (place.kind.kind === "SelfSubjectAccessReview") return review(user, parse(request, body));
    authorize(user, attemptOf(place, verb), place.name);
    if (isWatch) return this.#watch(place, url.searchParams, response);
    switch (verb) {
      case "list":
        return this.#list(place, url.searchParams);
      case "get":
        return { status: 200, body: this.#find(place) };
      case "create":
        return this.#create(place, parse(request, body));
      case "patch":
        return this.#patch(place, request, body);
      case "delete":
        return this.#delete(place, request, body);
      default:
        throw new Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    }
  }

  #subresource(user: User, place: Place | undefined): Answer {
    if (place?.kind.kind !== "Pod" || place.subresource !== "exec") throw noSuchResource();
    authorize(user, attemptOf(place, "get"), place.name);
    throw badRequest("Upgrade request required");
  }

  #find({ kind, namespace, name = "" }: Place): Stored {
    const found = this.#parts.store.find(kind.kind, namespace, name);
    if (found === undefined)
      throw notFound(groupOf(kind) === "" ? kind.plural : `${kind.plural}.${groupOf(kind)}`, name);
    return found;
  }

  #list({ kind, namespace, name }: Place, query: URLSearchParams): Answer {
    if (name !== undefined) throw noSuchResource();
    const { store } = this.#parts;
    const all = store.list(kind.kind, namespace).filter(selectorOf(kind.kind, query));
    const limit = Number(query.get("limit") ?? 0) || all.length;
    const [version = String(store.version), from = "0"] = (query.get("continue") ?? "").split(":").filter(Boolean);
    if (Number(version) < store.oldest) {
      throw new Refusal(
        410,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result.",
      );
    }
    const end = Number(from) + limit;
    const metadata = { resourceVersion: version, ...(end < all.length && { continue: `${version}:${end}` }) };
    // The objects of a list don't say what they are.
    const items = all.slice(Number(from), end).map(({ apiVersion: _, kind: __, ...object }) => object);
    return { status: 200, body: { kind: `${kind.kind}List`, apiVersion: kind.api, metadata, items } };
  }

  #watch({ kind, namespace, name }: Place, query: URLSearchParams, response: ServerResponse): undefined {
    if (name !== undefined) throw noSuchResource();
    const isSelected = selectorOf(kind.kind, query);
    const seconds = Number(query.get("timeoutSeconds") ?? 1_800);
    const order = { kind: kind.kind, namespace, isSelected, from: query.get("resourceVersion"), seconds };
    const end = answerWatch(this.#parts.store, order, response);
    this.#watches.add(end);
    response.on("close", () => this.#watches.delete(end));
  }

  #create({ kind, namespace, name }: Place, body: Record<string, unknown>): Answer {
    if (name !== undefined)
      throw new Refusal(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
    const { store, habits } = this.#parts;
    if (isOfAgentSandbox(kind) && !(body["kind"] && body["apiVersion"]))
      throw badRequest(`Object 'Kind' is missing in '${JSON.stringify(body)}'`);
    checkKind(kind, body);
    checkFields(kind.kind, body);
    const meta = (body["metadata"] ?? {}) as Record<string, string>;
    if (meta["namespace"] !== undefined && meta["namespace"] !== namespace) {
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    }
    if (meta["resourceVersion"]) throw badRequest("resourceVersion should not be set on objects to be created");
    if (kind.isClusterWide !== true && store.find("Namespace", "", namespace) === undefined)
      throw notFound("namespaces", namespace);
    checkRules(kind.kind, body);
    if (kind.kind === "Pod") {
      const account = (body["spec"] as { serviceAccountName?: string }).serviceAccountName ?? "default";
      const pods = store.list("Pod", namespace).length;
      if (store.find("ServiceAccount", namespace, account) === undefined) {
        throw forbidden(
          "pods",
          meta["name"] ?? "",
          `error looking up service account ${namespace}/${account}: serviceaccount "${account}" not found`,
        );
      }
      if (pods >= habits.mostPods) {
        throw forbidden(
          "pods",
          meta["name"] ?? "",
          `exceeded quota: pods, requested: pods=1, used: pods=${pods}, limited: pods=${habits.mostPods}`,
        );
      }
    }
    const given =
      kind.kind === "Pod"
        ? { ...body, status: { phase: "Pending" } }
        : { ...body, ...(kind.kind === "Job" && { status: {} }) };
    return { status: 201, body: store.create(kind, namespace, given) };
  }

  #patch(place: Place, request: IncomingMessage, body: Buffer): Answer {
    const type = request.headers["content-type"] ?? "";
    if (type !== "application/merge-patch+json") {
      throw new Refusal(
        415,
        "UnsupportedMediaType",
        `the body of the request was in an unknown format - accepted media types include: application/merge-patch+json, not ${type}`,
      );
    }
    const patch = JSON.parse(body.toString("utf8")) as Record<string, unknown>;
    const before = this.#find(place);
    const after = merge(before, patch) as Stored;
    checkFields(place.kind.kind, after);
    checkChange(place.kind.kind, before, after);
    const wanted = (patch["metadata"] as { resourceVersion?: string } | undefined)?.resourceVersion;
    if (wanted !== undefined && wanted !== before.metadata.resourceVersion)
      throw conflict(
        place,
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    return { status: 200, body: this.#parts.store.update(before, (copy) => Object.assign(copy, after)) };
  }

  #delete(place: Place, request: IncomingMessage, body: Buffer): Answer {
    const options = body.length === 0 ? {} : parse(request, body);
    checkFields("DeleteOptions", options);
    const {
      preconditions,
      propagationPolicy = "Background",
      gracePeriodSeconds,
    } = options as {
      preconditions?: { uid?: string };
      propagationPolicy?: string;
      gracePeriodSeconds?: number;
    };
    if (!["Background", "Foreground", "Orphan"].includes(propagationPolicy))
      throw badRequest(`invalid propagation policy: ${propagationPolicy}`);
    const found = this.#find(place);
    const { uid } = found.metadata;
    if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
      throw conflict(
        place,
        `Precondition failed: UID in precondition: ${preconditions.uid}, UID in object meta: ${uid}`,
      );
    }
    this.#parts.controllers.delete(found, propagationPolicy, gracePeriodSeconds);
    const details = { name: place.name, kind: place.kind.plural, uid };
    return { status: 200, body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details } };
  }

  #exec(request: IncomingMessage, url: URL, socket: Socket, head: Buffer): void {
    const { users, store, kubelet, habits } = this.#parts;
    const user = authenticate(users, request.headers.authorization);
    const place = placeOf(url.pathname);
    if (place?.kind.kind !== "Pod" || place.subresource !== "exec") throw noSuchResource();
    // A GET; since Kubernetes 1.35 it needs the right to create, too.
    for (const verb of ["get", "create"]) authorize(user, attemptOf(place, verb), place.name);
    const pod = store.find("Pod", place.namespace, place.name ?? "");
    const order = readExec(pod, place.name ?? "", url.searchParams);
    const running = kubelet.runningOf(pod?.metadata.uid ?? "");
    if (running === undefined) throw new Refusal(500, "InternalError", `container not found ("${order.container}")`);
    const protocol = chooseProtocol(request.headers["sec-websocket-protocol"] ?? "", habits.hasV5);
    const key = request.headers["sec-websocket-key"] ?? "";
    if (request.headers["sec-websocket-version"] !== "13" || key === "") throw badRequest("bad WebSocket request");
    const session = serveExec({ pod: place.name ?? "", running, order, protocol, key, head }, socket, (ended) =>
      this.sessions.delete(ended),
    );
    this.sessions.add(session);
  }
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

function verbOf(method: string, { name }: Place, isWatch: boolean): string {
  if (isWatch) return "watch";
  if (method === "GET") return name === undefined ? "list" : "get";
  const verbs: Readonly<Record<string, string>> = { POST: "create", PATCH: "patch", PUT: "update" };
  if (method === "DELETE") return name === undefined ? "deletecollection" : "delete";
  return verbs[method] ?? method.toLowerCase();
}

function attemptOf({ kind, namespace, subresource }: Place, verb: string): Attempt {
  const resource = subresource === undefined ? kind.plural : `${kind.plural}/${subresource}`;
  return { verb, group: groupOf(kind), resource, namespace };
}

function review(user: User, body: Record<string, unknown>): Answer {
  checkFields("SelfSubjectAccessReview", body);
  const { resourceAttributes: wanted } = body["spec"] as { resourceAttributes: Record<string, string> };
  const resource = [wanted["resource"], wanted["subresource"]].filter(Boolean).join("/");
  const attempt = {
    verb: wanted["verb"] ?? "",
    group: wanted["group"] ?? "",
    resource,
    namespace: wanted["namespace"] ?? "",
  };
  const isAllowed = may(user, attempt);
  const status = isAllowed ? { allowed: true, reason: "RBAC: allowed" } : { allowed: false };
  return {
    status: 201,
    body: { kind: "SelfSubjectAccessReview", apiVersion: "authorization.k8s.io/v1", metadata: {}, ...body, status },
  };
}

function checkKind(
  kind: Place["kind"],
  { apiVersion = kind.api, kind: given = kind.kind }: Record<string, unknown>,
): void {
  if (apiVersion !== kind.api)
    throw badRequest(
      `the API version in the data (${apiVersion as string}) does not match the expected API version (${kind.api})`,
    );
  if (given !== kind.kind)
    throw badRequest(`${given as string} in version "${kind.api}" cannot be handled as a ${kind.kind}`);
}

function conflict({ kind, name }: Place, why: string): Refusal {
  return new Refusal(409, "Conflict", `Operation cannot be fulfilled on ${kind.plural} "${name}": ${why}`, {
    name,
    kind: kind.plural,
  });
}

function faultAnswer(
  { status, retryAfter }: { status: number; retryAfter?: number },
  response: ServerResponse,
): Refusal {
  if (retryAfter !== undefined) response.setHeader("Retry-After", String(retryAfter));
  const reasons: Readonly<Record<number, string>> = {
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
  };
  const message =
    status === 429
      ? "the server has received too many requests and has asked us to try again later"
      : `the server answers ${status}`;
  return new Refusal(
    status,
    reasons[status] ?? "Unknown",
    message,
    retryAfter === undefined ? undefined : { retryAfterSeconds: retryAfter },
  );
}

function parse(request: IncomingMessage, body: Buffer): Record<string, unknown> {
  const type = (request.headers["content-type"] ?? "").split(";")[0];
  if (type !== "application/json")
    throw new Refusal(415, "UnsupportedMediaType", `the body of the request was in an unknown format: ${type}`);
  try {
    return JSON.parse(body.toString("utf8")) as Record<string, unknown>;
  } catch (error) {
    throw badRequest(`couldn't get version/kind; json parse error: ${(error as Error).message}`);
  }
}

function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === "object" && target !== null && !Array.isArray(target);
  const result: Record<string, unknown> = isObject ? structuredClone(target as Record<string, unknown>) : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}

/** A body without its length ends a connection that is kept open: the server takes it for the next request. */
async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MOST_BODY)
      throw new Refusal(413, "RequestEntityTooLarge", `Request entity too large: limit is ${MOST_BODY}`);
    chunks.push(chunk);
  }
  if (length > 0 && request.headers["content-length"] === undefined) throw badRequest("a body needs a Content-Length");
  return Buffer.concat(chunks);
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const type = typeof body === "string" ? "text/plain" : "application/json";
  const id = createHash("sha1").update(text).digest("hex").slice(0, 8);
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(text), "Audit-Id": id });
  response.end(text);
}
