import { posix } from "node:path";
import { encodeTarMember, TAR_BLOCK, tarPadding } from "../../../util/tar/tar-encode.js";
import { readTar } from "../../../util/tar/tar-read.js";
import type { RunningContainer } from "./container.js";
import { EngineError } from "./engine/engine-error.js";

/** Where distributions have the bundle of all authorities. Other names for it are links to one of these. */
const PLACES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/var/lib/ca-certificates/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
const MAX_BUNDLE = 8 << 20;
const START = "# Glovebox: trusted while the sandbox is open";
const END = "# Glovebox: end";
const OURS = new RegExp(`\\n${START}\\n[^#]*${END}\\n`, "g");

type Place = Pick<RunningContainer, "engine" | "id">;

/** The bundle of a container, without what was added to it. */
export interface SystemBundle {
  path: string;
  text: string;
  mode: number;
  mtime: number;
  /** Whether something had been added. */
  isChanged: boolean;
}

/** Finds the bundle of a container, which may have stopped; undefined where it has none. The engine reads it, so that no link leads elsewhere. */
export async function readBundle(container: Place): Promise<SystemBundle | undefined> {
  for (const path of PLACES) {
    const found = await readFile(container, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Adds a certificate to a bundle, in place of one that was added before. Without one, what was added is removed. */
export async function writeBundle(container: Place, bundle: SystemBundle, certificate?: string): Promise<void> {
  if (certificate === undefined && !bundle.isChanged) return;
  const added = certificate === undefined ? "" : `\n${START}\n${certificate.trim()}\n${END}\n`;
  await container.engine.call("PUT", `/containers/${container.id}/archive`, {
    query: { path: posix.dirname(bundle.path) },
    body: archiveOf(bundle, Buffer.from(bundle.text + added, "latin1")),
  });
}

async function readFile({ engine, id }: Place, path: string): Promise<SystemBundle | undefined> {
  try {
    const archive = await engine.stream("GET", `/containers/${id}/archive`, { query: { path } });
    for await (const { type, size, mode, mtime = 0, data } of readTar(archive, 1)) {
      if ((type !== "0" && type !== "\0") || size > MAX_BUNDLE) return undefined;
      const pieces: Buffer[] = [];
      for await (const piece of data) pieces.push(piece);
      const whole = Buffer.concat(pieces).toString("latin1");
      const text = whole.replace(OURS, "");
      return { path, text, mode, mtime, isChanged: text !== whole };
    }
  } catch (error) {
    if (!(error instanceof EngineError) || error.status !== 404) throw error;
  }
  return undefined;
}

async function* archiveOf({ path, mode, mtime }: SystemBundle, content: Buffer): AsyncGenerator<Uint8Array> {
  const name = Buffer.from(posix.basename(path));
  yield encodeTarMember({ path: name, type: "file", mode, mtime, size: content.length });
  yield content;
  yield tarPadding(content.length);
  yield Buffer.alloc(2 * TAR_BLOCK);
}
