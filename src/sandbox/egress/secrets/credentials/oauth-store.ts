import { realpathSync } from "node:fs";
import { SandboxError } from "../../../../../contracts/errors.js";
import { writeFileAtomic } from "../../../../machine/atomic-file.js";
import { withLockAt } from "../../../../machine/lock.js";
import { checkTokenUrl, isToken, requestToken } from "./token-endpoint.js";
import type { TokenRoute } from "./token-route.js";

/** Who asks for tokens, and where. */
export interface OauthClient {
  /** The address of the token endpoint. */
  tokenUrl: string;
  clientId?: string | undefined;
  scope?: string | undefined;
}

/** A login that is kept in a file of this machine. */
export interface OauthStore {
  path: string;
  /** Reads the file, and refuses one that others could have written or read. */
  read(): Promise<string>;
}

interface Login {
  refresh_token: string;
  client_secret?: unknown;
  access_token?: unknown;
  expires_at?: unknown;
}

/** A token that has less left than this is renewed. Longer than the broker looks ahead. */
const TOO_LITTLE = 90_000;

/**
 * Gets the access token of a stored login, and refreshes it if it is about to expire. A refresh token that rotates is used once, by one process of all
 * that share the file: under a lock beside it, and the new one is in the file before the token is used.
 */
export async function fetchOauthToken(
  name: string,
  client: OauthClient,
  store: OauthStore,
  route: TokenRoute,
): Promise<{ value: string; expiresAt?: number }> {
  const url = checkTokenUrl(name, client.tokenUrl);
  const fresh = tokenOf(parseLogin(name, await store.read()));
  if (fresh !== undefined) return fresh;
  const path = realpathSync(store.path);
  return await withLockAt(path, async () => {
    const login = parseLogin(name, await store.read());
    return tokenOf(login) ?? (await refresh(name, { client, url, path, login, route }));
  });
}

async function refresh(
  name: string,
  { client, url, path, login, route }: { client: OauthClient; url: URL; path: string; login: Login; route: TokenRoute },
): Promise<{ value: string; expiresAt?: number }> {
  const { clientId, scope } = client;
  const { client_secret } = login;
  const form = {
    grant_type: "refresh_token",
    refresh_token: login.refresh_token,
    ...(clientId && { client_id: clientId }),
    ...(typeof client_secret === "string" && { client_secret }),
    ...(scope && { scope }),
  };
  const issued = await requestToken(name, url, form, route);
  const { accessToken, expiresAt, refreshToken = login.refresh_token } = issued;
  const { access_token: _token, expires_at: _time, ...rest } = login;
  const time = expiresAt === undefined ? {} : { expires_at: new Date(expiresAt).toISOString() };
  const next = { ...rest, refresh_token: refreshToken, access_token: accessToken, ...time };
  await writeFileAtomic(path, `${JSON.stringify(next, null, 2)}\n`, 0o600);
  return { value: accessToken, ...(expiresAt !== undefined && { expiresAt }) };
}

/** The stored access token, if it says how long it lasts and that is long enough. */
function tokenOf({ access_token, expires_at }: Login): { value: string; expiresAt: number } | undefined {
  const expiresAt = typeof expires_at === "string" ? Date.parse(expires_at) : Number.NaN;
  return isToken(access_token) && expiresAt - Date.now() > TOO_LITTLE ? { value: access_token, expiresAt } : undefined;
}

function parseLogin(name: string, text: string): Login {
  let found: Partial<Login> | null = null;
  try {
    found = JSON.parse(text) as Partial<Login> | null;
  } catch {
    // The error of the parser shows a part of the text.
  }
  const { refresh_token } = found ?? {};
  if (isToken(refresh_token)) return { ...found, refresh_token };
  throw new SandboxError("unauthenticated", `Secret ${name} has no login: its file has no refresh_token`, {
    hint: 'write { "refresh_token": "…" } to the file, and chmod 600',
  });
}
