import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { encodeTarMember, TAR_BLOCK, tarPadding } from "../../../src/util/tar/tar-encode.js";
import { listen } from "../egress/running-proxy.js";

/** A registry of npm on loopback that has one package. */
export interface TinyRegistry {
  readonly port: number;
  /** The paths that were asked for. */
  readonly asked: string[];
  /** Whether a request had a token. */
  sawToken(): boolean;
  /** The hash of the package, as a lockfile has it. */
  readonly integrity: string;
  close(): void;
}

export const PACKAGE = "tiny-thing";

/** Serves a package with these files under the name of this host, whatever the request calls it. */
export async function startTinyRegistry(host: string, files: Readonly<Record<string, string>>): Promise<TinyRegistry> {
  const asked: string[] = [];
  let hasToken = false;
  const tarball = packFiles(files);
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const shasum = createHash("sha1").update(tarball).digest("hex");
  const server = createServer((request, response) => {
    const { url = "" } = request;
    asked.push(url);
    hasToken ||= request.headers.authorization !== undefined;
    if (url.endsWith(".tgz")) response.end(tarball);
    else if (url.startsWith(`/${PACKAGE}`)) {
      const dist = { tarball: `http://${host}:${port}/${PACKAGE}/-/${PACKAGE}-1.0.0.tgz`, integrity, shasum };
      const versions = { "1.0.0": { name: PACKAGE, version: "1.0.0", dist, hasInstallScript: true } };
      response.setHeader("Content-Type", "application/json");
      response.end(JSON.stringify({ name: PACKAGE, "dist-tags": { latest: "1.0.0" }, versions }));
    } else response.writeHead(404).end("{}");
  });
  const port = await listen(server);
  return { port, asked, sawToken: () => hasToken, integrity, close: () => server.close() };
}

/** Files as a gzipped archive, all below one folder. */
export function packFiles(files: Readonly<Record<string, string>>, folder = "package"): Buffer {
  const members = Object.entries(files).flatMap(([name, text]) => {
    const content = Buffer.from(text);
    const member = {
      type: "file",
      path: Buffer.from(`${folder}/${name}`),
      size: content.length,
      mode: 0o644,
      mtime: 0,
    };
    return [encodeTarMember(member as Parameters<typeof encodeTarMember>[0]), content, tarPadding(content.length)];
  });
  return gzipSync(Buffer.concat([...members, Buffer.alloc(2 * TAR_BLOCK)]));
}
