import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { text } from "node:stream/consumers";
import { createCertificate } from "./certificate.js";
import { listen } from "./running-proxy.js";

/** A token endpoint as strict as real ones. */
export interface TokenServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Its certificate, as PEM and as a file. */
  readonly ca: string;
  readonly caFile: string;
  /** Every form that was sent, in order. */
  readonly forms: URLSearchParams[];
  /** How often a refresh token was used that had been used before. */
  readonly reuses: number;
  /** Seconds that new access tokens last. */
  lifetime: number;
  /** A refresh token of a new login. */
  login(): string;
  isValid(accessToken: string): boolean;
  /** What it answers to a form; undefined for a refusal. */
  grant(form: URLSearchParams): object | undefined;
}

/** What an endpoint does with a form that is not a refresh; undefined: it refuses. */
type OtherGrant = (form: URLSearchParams) => object | undefined;

/** Starts one. Refresh tokens rotate, and the second use of one revokes its whole login. */
export async function startTokenServer(folder: string, other: OtherGrant = () => undefined): Promise<TokenServer> {
  const certificate = createCertificate(folder, ["localhost"]);
  const current = new Map<string, string>();
  const used = new Map<string, string>();
  const access = new Map<string, string>();
  const forms: URLSearchParams[] = [];
  const server = createServer(certificate, (incoming, response) => void serve(incoming, response));
  const port = await listen(server);
  const issue = (login: string): object => {
    const [refreshToken, accessToken] = [`refresh-${newToken()}`, `access-${newToken()}`];
    current.set(refreshToken, login);
    access.set(accessToken, login);
    return { access_token: accessToken, refresh_token: refreshToken, expires_in: state.lifetime, token_type: "Bearer" };
  };
  const refresh = (token: string): object | undefined => {
    const login = current.get(token);
    const reused = used.get(token);
    if (reused !== undefined) {
      state.reuses += 1;
      for (const tokens of [current, access]) for (const [each, of] of tokens) if (of === reused) tokens.delete(each);
    }
    if (login === undefined) return undefined;
    current.delete(token);
    used.set(token, login);
    return issue(login);
  };
  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(incoming.url ?? "", state.url);
    const form = new URLSearchParams(await text(incoming));
    forms.push(form);
    if (pathname === "/hangs") return;
    if (pathname === "/breaks") return void response.destroy();
    if (pathname === "/fails") return void response.writeHead(500).end("access_token=leaked-leaked");
    if (pathname === "/moves") return void response.writeHead(307, { Location: `${state.url}` }).end();
    if (pathname === "/html") return void response.end("<p>Sign in</p>");
    if (pathname === "/floods") return void response.end(`{"access_token":"${"x".repeat(2 << 20)}"}`);
    if (pathname === "/mac") return void response.end('{"access_token":"0123456789","token_type":"mac"}');
    if (pathname === "/expired") return void response.end('{"access_token":"0123456789","expires_in":0}');
    const token = state.grant(form);
    response.setHeader("Content-Type", "application/json");
    if (token !== undefined) response.end(JSON.stringify(token));
    else response.writeHead(400).end('{"error":"invalid_grant","error_description":"free text"}');
  };
  const state = {
    ...{ port, url: `https://localhost:${port}/token`, ca: certificate.cert.toString(), caFile: certificate.path },
    ...{ forms, reuses: 0, lifetime: 3600 },
    login(): string {
      const token = `refresh-${newToken()}`;
      current.set(token, newToken());
      return token;
    },
    grant: (form: URLSearchParams): object | undefined =>
      form.get("grant_type") === "refresh_token" ? refresh(form.get("refresh_token") ?? "") : other(form),
    isValid: (token: string): boolean => access.has(token),
    async [Symbol.asyncDispose](): Promise<void> {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return state;
}

function newToken(): string {
  return randomBytes(15).toString("base64");
}
