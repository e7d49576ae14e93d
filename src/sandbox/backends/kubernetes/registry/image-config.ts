import type { EngineImage } from "../../../../../contracts/container-engine.js";
import { SandboxError, toSandboxError } from "../../../../../contracts/errors.js";
import { toImageDefaults, type WrittenImageConfig } from "../../image-defaults.js";
import { placeOfImage, RegistryClient } from "./registry-client.js";

const MANIFESTS = [
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];
const INDEXES = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
];

interface Descriptor {
  readonly digest?: string;
  readonly platform?: { readonly os?: string; readonly architecture?: string };
}
interface Manifest {
  readonly config?: Descriptor;
  /** Of an index: one for each platform. */
  readonly manifests?: readonly Descriptor[];
}

/** What an image runs by itself. Neither a cluster nor a pod can tell, so its registry is asked. */
export async function readImageConfig(
  image: string,
  architecture: string,
  signal: AbortSignal,
): Promise<Pick<EngineImage, "entrypoint" | "cmd" | "healthcheck" | "volumes" | "user">> {
  try {
    const place = placeOfImage(image);
    const client = new RegistryClient(place, signal);
    let manifest = await client.get<Manifest>("manifests", place.reference, [...INDEXES, ...MANIFESTS]);
    if (manifest.manifests !== undefined) {
      const own = manifest.manifests.find(
        ({ platform }) => platform?.os === "linux" && platform.architecture === architecture,
      );
      if (own?.digest === undefined)
        throw new SandboxError("not_found", `There is no "${image}" for linux/${architecture}`);
      manifest = await client.get<Manifest>("manifests", own.digest, MANIFESTS);
    }
    const { digest } = manifest.config ?? {};
    if (digest === undefined) throw new SandboxError("unavailable", "its manifest names no configuration");
    const { config } = await client.get<{ config?: WrittenImageConfig }>("blobs", digest, ["*/*"]);
    const { entrypoint, cmd, healthcheck, volumes, user } = toImageDefaults(config ?? {});
    // A cluster takes the user from the image, too, but not the group. It can't be given one without the other, or by its name.
    return { entrypoint, cmd, volumes, user: /^\d+:\d+$/.test(user) ? user : "", ...(healthcheck && { healthcheck }) };
  } catch (error) {
    if (signal.aborted) throw error;
    const { code, message, hint, retryable } = toSandboxError(error);
    throw new SandboxError(code, `What the image "${image}" runs can't be found out: ${message}`, {
      backend: "kubernetes",
      cause: error,
      retryable,
      hint:
        hint ??
        "only its registry knows it, which must be reachable from here; the agent's container needs no such answer",
    });
  }
}
