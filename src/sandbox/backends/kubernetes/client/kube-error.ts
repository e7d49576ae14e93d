import { SandboxError, type SandboxErrorCode, type SandboxErrorDetails } from "../../../../../contracts/errors.js";

const LONGEST_TEXT = 2_000;
/** What a timer can wait, in milliseconds: with more it would not wait at all. */
const LONGEST_WAIT = 2 ** 31 - 1;

/** What only errors of a cluster have. */
export interface KubeErrorDetails extends SandboxErrorDetails {
  /** The HTTP status; absent without an answer. */
  status?: number | undefined;
  /** The cluster's own word, such as `AlreadyExists`. */
  reason?: string | undefined;
  /** How long the server asks to wait, in milliseconds. */
  retryAfter?: number | undefined;
  /** Whether the request never reached the server, so that it can be made again whatever it does. */
  wasNotSent?: boolean;
}

/** A failure that the cluster reports, or that was met on the way to it. */
export class KubeError extends SandboxError {
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly retryAfter: number | undefined;
  readonly wasNotSent: boolean;

  constructor(code: SandboxErrorCode, message: string, details: KubeErrorDetails = {}) {
    super(code, message, { backend: "kubernetes", ...details });
    this.status = details.status;
    this.reason = details.reason;
    this.retryAfter = details.retryAfter;
    this.wasNotSent = details.wasNotSent ?? false;
  }
}

/** Whether the error is the cluster's answer with this HTTP status. */
export function hasStatus(error: unknown, status: number): boolean {
  return error instanceof KubeError && error.status === status;
}

/** Whether the error says that the cluster has no objects of this kind at all. */
export function isUnknownKind(error: unknown): boolean {
  return hasStatus(error, 404) && /could not find the requested resource|404 page not found/.test(String(error));
}

const CODES: Readonly<Record<number, SandboxErrorCode>> = {
  400: "invalid_argument",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  409: "conflict",
  413: "limit_exceeded",
  415: "invalid_argument",
  422: "invalid_argument",
};

/** A `Status` of the API, as far as it is read. */
export interface ApiStatus {
  readonly kind?: unknown;
  readonly status?: unknown;
  readonly code?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: {
    readonly kind?: unknown;
    readonly name?: unknown;
    readonly retryAfterSeconds?: unknown;
    readonly causes?: readonly { readonly reason?: unknown; readonly message?: unknown }[];
  };
}

/** The error for an answer whose status is no success. */
export function answerError(what: string, status: number, body: string, retryAfterHeader?: string): KubeError {
  const parsed = parseStatus(body);
  const text = (typeof parsed?.message === "string" ? parsed.message : body.trim()) || `status ${status}`;
  const asked = Number(retryAfterHeader ?? parsed?.details?.retryAfterSeconds ?? Number.NaN);
  return statusError(
    what,
    { ...parsed, code: status, message: text },
    asked >= 0 ? Math.min(asked * 1_000, LONGEST_WAIT) : undefined,
  );
}

/** The error for a `Status` that the cluster sent. */
export function statusError(what: string, { code, reason, message }: ApiStatus, retryAfter?: number): KubeError {
  const status = typeof code === "number" ? code : 0;
  const word = typeof reason === "string" && reason !== "" ? reason : undefined;
  const text = typeof message === "string" ? message.slice(0, LONGEST_TEXT) : `status ${status}`;
  const details = { status, reason: word, ...(retryAfter !== undefined && { retryAfter }) };
  const fail = (kind: SandboxErrorCode, more: SandboxErrorDetails = {}): KubeError =>
    new KubeError(kind, `Kubernetes refuses to ${what}: ${text}`, { ...details, ...more });
  const missing = /^namespaces? "([^"]+)" not found/.exec(text)?.[1];
  if (status === 404 && missing !== undefined)
    return fail("not_found", { hint: `kubectl create namespace ${missing}` });
  if (status === 401) {
    return fail("unauthenticated", {
      hint: "log in to the cluster again, then check it with: kubectl auth can-i --list",
    });
  }
  if (status === 403) return forbidden(text, fail);
  if (status === 429 || status >= 500 || status === 408 || status === 410) {
    return fail("unavailable", {
      hint: retryAfter === undefined ? undefined : `try again in ${Math.ceil(retryAfter / 1_000)} s`,
    });
  }
  return fail(CODES[status] ?? "internal");
}

/** A 403 has several causes, which only its text tells apart. */
function forbidden(text: string, fail: (code: SandboxErrorCode, more?: SandboxErrorDetails) => KubeError): KubeError {
  if (/exceeded quota/.test(text)) {
    const hint = "free some of the namespace's quota (kubectl describe resourcequota), or set smaller limits";
    return fail("limit_exceeded", { retryable: true, hint });
  }
  if (/because it is being terminated/.test(text))
    return fail("unavailable", { hint: "the namespace is being deleted" });
  const policy = /violates PodSecurity "([^":]+)/.exec(text)?.[1];
  if (policy !== undefined) {
    return fail("permission_denied", { hint: `the namespace enforces the pod security standard ${policy}` });
  }
  const [, user, verb, resource] = /User "([^"]*)" cannot (\S+) resource "([^"]+)"/.exec(text) ?? [];
  if (user !== undefined) {
    const hint = `${user} lacks the verb ${verb} on ${resource}; glovebox doctor kubernetes prints the role that is missing`;
    return fail("permission_denied", { hint });
  }
  return fail("permission_denied");
}

/** The error for a request without an answer: nothing listens, the server is not trusted, or the connection broke. */
export function connectionError(error: unknown, server: string, what: string): SandboxError {
  if (error instanceof SandboxError) return error;
  const { code = "", message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return new KubeError("unavailable", `No Kubernetes API server answers at ${server} (${code})`, {
        cause: error,
        wasNotSent: true,
        hint: "check the cluster with: kubectl cluster-info",
      });
    default:
      if (/^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO|EPROTO)/.test(code)) {
        return new KubeError("unauthenticated", `TLS with the API server at ${server} failed: ${message}`, {
          cause: error,
          wasNotSent: true,
          hint: "check certificate-authority, client-certificate and tls-server-name in the kubeconfig",
        });
      }
      return new KubeError("unavailable", `The connection to the API server was lost (${what}): ${message}`, {
        cause: error,
      });
  }
}

function parseStatus(body: string): ApiStatus | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    // The answer of a proxy in between.
    return undefined;
  }
}
