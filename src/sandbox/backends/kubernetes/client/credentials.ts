import { readFileSync } from "node:fs";
import { SandboxError } from "../../../../../contracts/errors.js";
import { registerSecret } from "../../../../util/sanitize.js";
import { type ExecCredential, runCredentialProgram } from "./credential-program.js";
import { type ClusterUser, readPem } from "./kubeconfig.js";

/** What a request shows to prove who we are. */
export interface Identity {
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly cert?: string;
  readonly key?: string;
}

/** Files are read again after this time: clusters renew them before they expire. */
const FRESH_FOR = 60_000;
/** A credential is renewed this long before it expires. */
const MARGIN = 10_000;

/** The credentials of one user, read and renewed when they are needed. */
export class Credentials {
  readonly #user: ClusterUser;
  #identity: Promise<Identity> | undefined;
  /** The last one that was fetched, unless the server has refused it. */
  #latest: Identity | undefined;
  #freshUntil = 0;
  #hidden = new Map<string, () => void>();

  constructor(user: ClusterUser) {
    this.#user = user;
  }

  /** What to show now. All callers that come while it is being fetched get the same. */
  async current(): Promise<Identity> {
    if (this.#identity !== undefined && performance.now() < this.#freshUntil) return await this.#identity;
    // Until the program is done, everybody waits for it.
    this.#freshUntil = Number.POSITIVE_INFINITY;
    const identity = this.#fetch();
    this.#identity = identity;
    try {
      this.#latest = await identity;
      return this.#latest;
    } catch (error) {
      if (this.#identity === identity) this.#identity = undefined;
      throw error;
    }
  }

  /** The server refused what was shown. Returns false if there is nothing else to show. */
  renew(refused: Identity): boolean {
    const { exec, tokenFile, certificate } = this.#user;
    const isRenewable = exec !== undefined || tokenFile !== undefined || (certificate && "path" in certificate);
    if (!isRenewable) return false;
    // Another call may already be renewing it.
    if (this.#latest === refused) {
      this.#latest = undefined;
      this.#freshUntil = 0;
    }
    return true;
  }

  async #fetch(): Promise<Identity> {
    const { exec, as = {} } = this.#user;
    const found = exec === undefined ? this.#own() : await runCredentialProgram(exec);
    const { token, cert, key, expiresAt } = found;
    const lasts = exec === undefined ? FRESH_FOR : Number.POSITIVE_INFINITY;
    this.#freshUntil = performance.now() + (expiresAt === undefined ? lasts : expiresAt - Date.now() - MARGIN);
    for (const secret of [token, key]) if (secret !== undefined) this.#hide(secret);
    return {
      headers: { ...as, ...(token !== undefined && { Authorization: `Bearer ${token}` }), ...this.#password() },
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
    };
  }

  #password(): Record<string, string> {
    const { username, password = "" } = this.#user;
    if (username === undefined) return {};
    this.#hide(password);
    return { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
  }

  #own(): ExecCredential {
    const { token, tokenFile, certificate, key } = this.#user;
    const text = tokenFile === undefined ? token : readToken(tokenFile);
    return {
      ...(text !== undefined && { token: text }),
      ...(certificate && { cert: readPem(certificate) }),
      ...(key && { key: readPem(key) }),
    };
  }

  /** No message may show it. Only the newest few are remembered, since tokens of an hour add up. */
  #hide(secret: string): void {
    if (secret === "" || this.#hidden.has(secret)) return;
    this.#hidden.set(secret, registerSecret(secret));
    const [oldest] = this.#hidden;
    if (this.#hidden.size > 8 && oldest !== undefined) {
      oldest[1]();
      this.#hidden.delete(oldest[0]);
    }
  }
}

function readToken(path: string): string {
  let token: string;
  try {
    token = readFileSync(path, "utf8").trim();
  } catch (cause) {
    throw new SandboxError("unauthenticated", `The token file ${path} cannot be read`, {
      backend: "kubernetes",
      cause,
    });
  }
  if (token !== "" && !/[^\x21-\x7e]/.test(token)) return token;
  throw new SandboxError("unauthenticated", `The token file ${path} contains no token`, { backend: "kubernetes" });
}
