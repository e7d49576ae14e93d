import { createHash } from "node:crypto";
import { SandboxError } from "../../../../../contracts/errors.js";
import { readUpTo } from "../../../../util/read-up-to.js";
import { findLogin, type RegistryLogin, registryOf } from "../../registry-login.js";

const PATIENCE = 20_000;
const MAX_ANSWER = 4 << 20;
/** Docker Hub answers elsewhere than its name says. */
const HUB = "registry-1.docker.io";

/** An image, as registries name it. */
export interface ImagePlace {
  readonly registry: string;
  readonly repository: string;
  /** A tag or a digest. */
  readonly reference: string;
}

/** Takes the name of an image apart. */
export function placeOfImage(image: string): ImagePlace {
  const registry = registryOf(image);
  const path = image.startsWith(`${registry}/`) ? image.slice(registry.length + 1) : image;
  const [named = "", digest] = path.split("@");
  const [, tag] = /:([^/]+)$/.exec(named) ?? [];
  const name = tag === undefined ? named : named.slice(0, -tag.length - 1);
  const isOfficial = registry === "docker.io" && !name.includes("/");
  return { registry, repository: isOfficial ? `library/${name}` : name, reference: digest ?? tag ?? "latest" };
}

/** Asks the registry of one image, with the user's login if it wants one. */
export class RegistryClient {
  readonly #place: ImagePlace;
  readonly #signal: AbortSignal;
  #authorization: string | undefined;

  constructor(place: ImagePlace, signal: AbortSignal) {
    this.#place = place;
    this.#signal = signal;
  }

  /** A document of the image. One that is named by its digest is what the digest says. */
  async get<T>(kind: "manifests" | "blobs", reference: string, accept: readonly string[]): Promise<T> {
    const { registry, repository } = this.#place;
    const what = `${kind}/${reference}`;
    const path = `/v2/${repository}/${what}`;
    let answer = await this.#ask(`${originOf(registry)}${path}`, accept);
    if (answer.status === 401) {
      this.#authorization = await this.#logIn(answer.headers.get("www-authenticate") ?? "");
      await answer.body?.cancel();
      answer = await this.#ask(`${originOf(registry)}${path}`, accept);
    }
    if (!answer.ok) throw await this.#refusal(answer, what);
    const bytes = await this.#read(answer);
    if (/^sha256:/.test(reference) && digestOf(bytes) !== reference) {
      throw new SandboxError("tampered", `The registry ${registry} answers with something else than ${reference}`);
    }
    try {
      return JSON.parse(bytes.toString("utf8")) as T;
    } catch (cause) {
      throw new SandboxError("unavailable", `The registry ${registry} does not answer with JSON (${what})`, { cause });
    }
  }

  async #ask(url: string, accept: readonly string[]): Promise<Response> {
    const authorization = this.#authorization;
    const headers = { accept: accept.join(", "), ...(authorization !== undefined && { authorization }) };
    return await this.#fetch(url, { headers });
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(PATIENCE)]);
    try {
      return await fetch(url, { ...init, signal });
    } catch (cause) {
      throw this.#unreachable(cause);
    }
  }

  async #read(answer: Response): Promise<Buffer> {
    if (answer.body === null) return Buffer.alloc(0);
    try {
      const { bytes, isWhole } = await readUpTo(answer.body as unknown as AsyncIterable<Uint8Array>, MAX_ANSWER);
      if (isWhole) return bytes;
    } catch (cause) {
      throw this.#unreachable(cause);
    }
    const { registry } = this.#place;
    throw new SandboxError("limit_exceeded", `The registry ${registry} answers with more than ${MAX_ANSWER} bytes`);
  }

  /** The header for this repository, from the user's login or, at most registries, from none. */
  async #logIn(challenge: string): Promise<string | undefined> {
    const { registry, repository } = this.#place;
    const login = await findLogin(registry);
    const basic = basicOf(login);
    if (!/^bearer /i.test(challenge)) return basic;
    const fields = Object.fromEntries(
      [...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name.toLowerCase(), value]),
    );
    const { realm = "", service = "", scope = `repository:${repository}:pull` } = fields;
    if (!isSafe(realm)) {
      throw new SandboxError(
        "unauthenticated",
        `The registry ${registry} wants a login at "${realm}", which is not safe`,
      );
    }
    const token = login?.identitytoken;
    const query = new URLSearchParams({ ...(service !== "" && { service }), scope });
    const refresh = new URLSearchParams({ grant_type: "refresh_token", service, scope, refresh_token: token ?? "" });
    const answer =
      token === undefined
        ? await this.#fetch(`${realm}?${query}`, { headers: basic === undefined ? {} : { authorization: basic } })
        : await this.#fetch(realm, {
            method: "POST",
            body: new URLSearchParams([...refresh, ["client_id", "glovebox"]]),
          });
    if (!answer.ok) throw await this.#refusal(answer, "a login");
    const given = JSON.parse((await this.#read(answer)).toString("utf8")) as { token?: string; access_token?: string };
    return `Bearer ${given.token ?? given.access_token ?? ""}`;
  }

  async #refusal(answer: Response, what: string): Promise<SandboxError> {
    await answer.body?.cancel();
    const { registry, repository, reference } = this.#place;
    const message = `The registry ${registry} answers ${answer.status} for ${what} of ${repository}:${reference}`;
    if (answer.status === 401 || answer.status === 403) {
      return new SandboxError("unauthenticated", message, { hint: `docker login ${registry}` });
    }
    return new SandboxError(answer.status === 404 ? "not_found" : "unavailable", message);
  }

  #unreachable(cause: unknown): unknown {
    if (this.#signal.aborted) return this.#signal.reason;
    const { registry } = this.#place;
    const why = cause instanceof Error ? ((cause.cause as Error | undefined)?.message ?? cause.message) : String(cause);
    return new SandboxError("unavailable", `The registry ${registry} can't be reached: ${why}`, { cause });
  }
}

/** Without TLS only on this machine, as Docker has it. */
function originOf(registry: string): string {
  const host = registry === "docker.io" ? HUB : registry;
  return isLoopback(host) ? `http://${host}` : `https://${host}`;
}

function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/.test(host);
}

/** Whether a login may be sent there. */
function isSafe(realm: string): boolean {
  if (!URL.canParse(realm)) return false;
  const { protocol, host } = new URL(realm);
  return protocol === "https:" || (protocol === "http:" && isLoopback(host));
}

function basicOf(login: RegistryLogin | undefined): string | undefined {
  if (login?.username === undefined) return undefined;
  return `Basic ${Buffer.from(`${login.username}:${login.password ?? ""}`).toString("base64")}`;
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
