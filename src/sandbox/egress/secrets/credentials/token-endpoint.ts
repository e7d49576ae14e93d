import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { SandboxError } from "../../../../../contracts/errors.js";
import { connectUpstream, type TokenRoute } from "./token-route.js";

/** A token with the time at which it expires. */
export interface IssuedToken {
  accessToken: string;
  /** Milliseconds since 1970. Undefined: the endpoint did not say. */
  expiresAt?: number;
  /** The one to use from now on, if the endpoint sent one. */
  refreshToken?: string;
}

/** Only tests change it: their endpoints have certificates of their own, and hang on purpose. No option leads here. */
export const tokenInternals: { ca?: string; timeout?: number } = {};

const TIMEOUT = 30_000;
const MAX_ANSWER = 1 << 20;

/** Checks the address of a token endpoint: https, without a password or a fragment. Anything else is `invalid_argument`. */
export function checkTokenUrl(name: string, text: unknown): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "https:" && url.username === "" && url.password === "" && url.hash === "") return url;
  throw new SandboxError("invalid_argument", `Secret ${name} has no usable token endpoint`, {
    hint: "it is an https:// address without a user, a password or a fragment",
  });
}

/**
 * Asks a token endpoint for a token, from this machine. No redirect is followed. A refusal is `unauthenticated`, an endpoint that fails, hangs or sends
 * something else is `unavailable`; messages name the secret and the host, and nothing that was sent or received but a standard error code.
 */
export async function requestToken(
  name: string,
  url: URL,
  form: Readonly<Record<string, string>>,
  route: TokenRoute,
): Promise<IssuedToken> {
  const fail = (why: string, isRefused = false): SandboxError =>
    new SandboxError(isRefused ? "unauthenticated" : "unavailable", `Secret ${name} has no value: ${url.host} ${why}`, {
      retryable: !isRefused,
    });
  const { status, body } = await post(url, new URLSearchParams(form).toString(), route, fail);
  const answer = parse(body);
  const isRefusal = status >= 400 && status < 500 && status !== 408 && status !== 429;
  if (isRefusal) throw fail(`refused to issue a token: ${status}${errorOf(answer)}`, true);
  if (status !== 200) throw fail(`answered with status ${status}`);
  return readToken(answer, fail);
}

function readToken(answer: Readonly<Record<string, unknown>>, fail: (why: string) => SandboxError): IssuedToken {
  const { access_token, refresh_token, token_type = "bearer", expires_in } = answer;
  if (!isToken(access_token)) throw fail("sent no access token");
  if (String(token_type).toLowerCase() !== "bearer") throw fail("sent a token that is not a bearer's");
  if (refresh_token !== undefined && refresh_token !== null && !isToken(refresh_token)) {
    throw fail("sent a malformed refresh token");
  }
  const seconds = expires_in === undefined || expires_in === null ? undefined : Number(expires_in);
  if (seconds !== undefined && !(seconds > 0)) throw fail("sent a token that has expired");
  return {
    accessToken: access_token,
    ...(seconds !== undefined && { expiresAt: Date.now() + seconds * 1000 }),
    ...(isToken(refresh_token) && { refreshToken: refresh_token }),
  };
}

/** Whether something is a token: what a header can carry, and long enough to be found again. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{8,32768}$/.test(value);
}

function parse(body: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(body);
    return typeof found === "object" && found !== null ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The code that the standard gives an answer; free text could contain what was sent. */
function errorOf({ error }: Readonly<Record<string, unknown>>): string {
  return typeof error === "string" && /^[a-z_]{1,40}$/.test(error) ? ` ${error}` : "";
}

async function post(
  url: URL,
  body: string,
  route: TokenRoute,
  fail: (why: string) => SandboxError,
): Promise<{ status: number; body: string }> {
  const { timeout = TIMEOUT } = tokenInternals;
  const ca = route.ca ?? (tokenInternals.ca === undefined ? undefined : [tokenInternals.ca]);
  const socket = await connectUpstream(url, route, ca, timeout).catch((error: Error) => {
    throw fail(`can't be reached: ${error.message}`);
  });
  const headers = {
    "Content-Type": "application/x-www-form-urlencoded",
    "Content-Length": Buffer.byteLength(body),
    Accept: "application/json",
  };
  const way = socket === undefined ? { agent: false, ...(ca && { ca: [...ca] }) } : { createConnection: () => socket };
  // Whatever NODE_TLS_REJECT_UNAUTHORIZED says.
  const outgoing = request(url, { method: "POST", headers, rejectUnauthorized: true, ...way });
  const answered = new Promise<{ status: number; body: string }>((resolve, reject) => {
    outgoing.once("error", (error: NodeJS.ErrnoException) =>
      reject(fail(`can't be reached (${error.code ?? "connection lost"})`)),
    );
    outgoing.once("response", (response: IncomingMessage) => {
      const pieces: Buffer[] = [];
      let length = 0;
      response.on("data", (piece: Buffer) => {
        length += piece.length;
        if (length > MAX_ANSWER) reject(fail("sent more than a token"));
        else pieces.push(piece);
      });
      response.once("error", () => reject(fail("broke off its answer")));
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString("utf8") }),
      );
    });
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(fail(`did not answer in ${timeout} ms`)), timeout);
  });
  outgoing.end(body);
  try {
    return await Promise.race([answered, late]);
  } finally {
    clearTimeout(timer);
    outgoing.destroy();
  }
}
