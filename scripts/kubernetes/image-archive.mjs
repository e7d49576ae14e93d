import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const TYPE = "application/vnd.oci.image";

/** Packs the archive of a file system as an image in OCI's format, under some names; returns the path of the pack. `own`: more of its configuration. */
export async function packImage(folder, { archive, names, own }) {
  const work = join(folder, `image-${process.hrtime.bigint()}`);
  const blobs = join(work, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  const architecture = { x64: "amd64", arm64: "arm64" }[process.arch];
  const hash = createHash("sha256");
  for await (const piece of createReadStream(archive)) hash.update(piece);
  const digest = hash.digest("hex");
  symlinkSync(archive, join(blobs, digest));
  const layer = { mediaType: `${TYPE}.layer.v1.tar`, digest: `sha256:${digest}`, size: statSync(archive).size };
  const config = blob("config", {
    architecture,
    os: "linux",
    config: {
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      Cmd: ["sleep", "2000000000"],
      ...own,
    },
    rootfs: { type: "layers", diff_ids: [layer.digest] },
  });
  const manifest = blob("manifest", {
    schemaVersion: 2,
    mediaType: `${TYPE}.manifest.v1+json`,
    config,
    layers: [layer],
  });
  const manifests = names.map((name) => ({
    ...manifest,
    platform: { os: "linux", architecture },
    annotations: { "io.containerd.image.name": name },
  }));
  writeFileSync(join(work, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(work, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  const pack = `${work}.tar`;
  execFileSync("tar", ["--dereference", "-C", work, "-cf", pack, "."]);
  rmSync(work, { recursive: true });
  return pack;

  function blob(kind, value) {
    const text = JSON.stringify(value);
    const name = createHash("sha256").update(text).digest("hex");
    writeFileSync(join(blobs, name), text);
    return { mediaType: `${TYPE}.${kind}.v1+json`, digest: `sha256:${name}`, size: Buffer.byteLength(text) };
  }
}
