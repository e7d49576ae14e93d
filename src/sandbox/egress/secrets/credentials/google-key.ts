import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { SandboxError } from "../../../../../contracts/errors.js";
import { checkTokenUrl, isToken, requestToken } from "./token-endpoint.js";
import type { TokenRoute } from "./token-route.js";

const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const HOUR = 3600;
const USERS_ENDPOINT = "https://oauth2.googleapis.com/token";

/**
 * Gets a short token for a Google key: the JSON of a service account, or what `gcloud auth application-default login` wrote. A malformed one is
 * `unauthenticated`.
 */
export async function fetchGoogleToken(
  name: string,
  key: string,
  scopes: readonly string[],
  route: TokenRoute,
): Promise<{ value: string; expiresAt: number }> {
  const found = parseKey(name, key);
  const { url, form } = found.type === "authorized_user" ? ofUser(name, found) : ofService(name, found, scopes);
  const { accessToken, expiresAt = Date.now() + HOUR * 1000 } = await requestToken(name, url, form, route);
  return { value: accessToken, expiresAt };
}

interface TokenRequest {
  url: URL;
  form: Record<string, string>;
}

/** What a key file has, as far as it is used; all of it unchecked. */
interface KeyFile {
  type?: unknown;
  client_email?: unknown;
  private_key?: unknown;
  private_key_id?: unknown;
  token_uri?: unknown;
  client_id?: unknown;
  client_secret?: unknown;
  refresh_token?: unknown;
}

function ofService(name: string, file: KeyFile, scopes: readonly string[]): TokenRequest {
  const { client_email, private_key, private_key_id, token_uri } = file;
  if (file.type !== "service_account") throw malformed(name, "its type is neither service_account nor authorized_user");
  if (typeof client_email !== "string" || client_email === "") throw malformed(name, "it has no client_email");
  if (scopes.length === 0) throw malformed(name, "a service account needs scopes");
  const url = checkTokenUrl(name, token_uri);
  const now = Math.floor(Date.now() / 1000);
  const header = { alg: "RS256", typ: "JWT", ...(typeof private_key_id === "string" && { kid: private_key_id }) };
  const claims = { iss: client_email, scope: scopes.join(" "), aud: url.href, iat: now, exp: now + HOUR };
  const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");
  const signature = sign("RSA-SHA256", Buffer.from(text), readRsaKey(name, private_key)).toString("base64url");
  return { url, form: { grant_type: GRANT, assertion: `${text}.${signature}` } };
}

function ofUser(name: string, { client_id, client_secret, refresh_token, token_uri }: KeyFile): TokenRequest {
  if (!isToken(client_id) || !isToken(client_secret)) throw malformed(name, "it has no client_id or client_secret");
  if (!isToken(refresh_token)) throw malformed(name, "it has no refresh_token");
  const url = checkTokenUrl(name, token_uri ?? USERS_ENDPOINT);
  return { url, form: { grant_type: "refresh_token", client_id, client_secret, refresh_token } };
}

function parseKey(name: string, text: string): KeyFile {
  try {
    const found: unknown = JSON.parse(text);
    if (typeof found === "object" && found !== null) return found;
  } catch {
    // The error of the parser shows a part of the text.
  }
  throw malformed(name, "it is not JSON");
}

function readRsaKey(name: string, text: unknown): KeyObject {
  try {
    const key = createPrivateKey(typeof text === "string" ? text : "");
    if (key.asymmetricKeyType === "rsa") return key;
  } catch {
    // The message could show a part of the key.
  }
  throw malformed(name, "its private_key is not an RSA key");
}

function malformed(name: string, why: string): SandboxError {
  return new SandboxError("unauthenticated", `Secret ${name} has no usable Google key: ${why}`, {
    hint: "use the JSON file that Google Cloud made for the service account",
  });
}
