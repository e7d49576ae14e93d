import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What an image says of its containers. */
export interface ImageWords {
  Entrypoint?: string[];
  Cmd?: string[];
  User?: string;
  WorkingDir?: string;
  Healthcheck?: { Test: string[] };
}

const OCI = "application/vnd.oci.image";

/** A registry on this machine that knows what images say of themselves, and none of their files. */
export class ImageRegistry implements AsyncDisposable {
  /** The requests so far: method, path, and whether they brought credentials. */
  readonly asked: string[] = [];
  /** The answer for the next request, instead of its own. */
  nextStatus: number | undefined;
  /** Whether it wants a token, and the login that gets one; without a login everybody does. */
  wantsToken = false;
  login: string | undefined;
  readonly #documents = new Map<string, { type: string; text: string }>();
  readonly #server = createServer((request, response) => this.#answer(request, response));

  static async start(): Promise<ImageRegistry> {
    const registry = new ImageRegistry();
    registry.#server.listen(0, "127.0.0.1");
    await new Promise((resolve, reject) => registry.#server.once("listening", resolve).once("error", reject));
    return registry;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Adds an image for two architectures, and returns its full name. */
  add(name: string, words: ImageWords, tag = "1"): string {
    const manifests = ["arm64", "amd64"].map((architecture) => {
      const config = architecture === "amd64" ? words : { Cmd: ["of-another-machine"] };
      const digest = this.#put(name, "blobs", `${OCI}.config.v1+json`, { architecture, os: "linux", config });
      const manifest = { schemaVersion: 2, config: { digest }, layers: [] };
      return {
        digest: this.#put(name, "manifests", `${OCI}.manifest.v1+json`, manifest),
        platform: { os: "linux", architecture },
      };
    });
    this.#put(name, "manifests", `${OCI}.index.v1+json`, { schemaVersion: 2, manifests }, tag);
    return `${this.host}/${name}:${tag}`;
  }

  /** Replaces what is there under every digest, and leaves the digests. */
  spoil(): void {
    for (const [path, { type }] of this.#documents) {
      if (path.includes("sha256:"))
        this.#documents.set(path, { type, text: JSON.stringify({ config: { Cmd: ["evil"] } }) });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #put(name: string, kind: string, type: string, value: object, tag?: string): string {
    const text = JSON.stringify(value);
    const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`;
    this.#documents.set(`/v2/${name}/${kind}/${tag ?? digest}`, { type, text });
    return digest;
  }

  #answer({ method = "", url = "", headers }: IncomingMessage, response: ServerResponse): void {
    const { authorization } = headers;
    this.asked.push(`${method} ${url}${authorization === undefined ? "" : ` as ${authorization.split(" ")[0]}`}`);
    const status = this.nextStatus;
    this.nextStatus = undefined;
    if (status !== undefined) return void response.writeHead(status).end();
    if (url.startsWith("/token?")) {
      const isKnown =
        this.login === undefined || authorization === `Basic ${Buffer.from(this.login).toString("base64")}`;
      return void response.writeHead(isKnown ? 200 : 401).end(isKnown ? '{"token":"good"}' : "");
    }
    if (this.wantsToken && authorization !== "Bearer good") {
      const challenge = `Bearer realm="http://${this.host}/token",service="here",scope="repository:x:pull"`;
      return void response.writeHead(401, { "www-authenticate": challenge }).end();
    }
    const found = this.#documents.get(url);
    if (found === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": found.type }).end(found.text);
  }
}
