import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listenInEngine } from "./engine-process.js";

/** The one user of a registry with a login, and the bcrypt hash of the password. */
export const LOGIN = { username: "ali", password: "open-sesame" };
const HASH = "$2b$04$kq9djbO1Ih0884EX7vqpC.NVOngOxUcHaIhdCH5euqFcNbRLlgvFC";

/** A real registry on the loopback of the engine's machine. */
export interface Registry extends Disposable {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** Spoils the content of every layer that it has. */
  corrupt(): void;
}

/** Starts a registry in a folder; with a login when that is asked for. */
export async function startRegistry(
  folder: string,
  port: number,
  opts: { isPrivate?: boolean } = {},
): Promise<Registry> {
  mkdirSync(folder, { recursive: true });
  const data = join(folder, "data");
  const htpasswd = join(folder, "htpasswd");
  writeFileSync(htpasswd, `${LOGIN.username}:${HASH}\n`);
  const config = join(folder, "config.yml");
  writeFileSync(
    config,
    [
      "version: 0.1",
      "log: { level: error }",
      `storage: { filesystem: { rootdirectory: "${data}" }, delete: { enabled: true } }`,
      `http: { addr: "127.0.0.1:${port}" }`,
      ...(opts.isPrivate === true ? [`auth: { htpasswd: { realm: test, path: "${htpasswd}" } }`] : []),
    ].join("\n"),
  );
  const child = await listenInEngine(port, ["docker-registry", "serve", config]);
  return {
    host: `127.0.0.1:${port}`,
    corrupt() {
      const blobs = join(data, "docker", "registry", "v2", "blobs", "sha256");
      for (const two of readdirSync(blobs)) {
        for (const digest of readdirSync(join(blobs, two))) {
          const file = join(blobs, two, digest, "data");
          const bytes = readFileSync(file);
          // Layers are compressed, manifests and configs are JSON.
          if (bytes[0] !== 0x7b)
            writeFileSync(
              file,
              bytes.map((byte, index) => (index > 20 ? byte ^ 0x55 : byte)),
            );
        }
      }
    },
    [Symbol.dispose]: () => child[Symbol.dispose](),
  };
}
