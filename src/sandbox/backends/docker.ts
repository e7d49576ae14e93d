import type { Backend, SandboxEntry, SnapshotRecord } from "../../../contracts/backend.js";
import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import { type LiveSecrets, withSecrets } from "../egress.js";
import { mirrorResources, planMirror } from "../git.js";
import { openWith, otherPlace } from "../lifecycle.js";
import type { Sandbox, SandboxOptions } from "../types.js";
import { DEFAULT_IMAGE } from "./default-image.js";
import { resumeContainer } from "./docker/container.js";
import type { ContainerPlan } from "./docker/container-config.js";
import type { DockerOptions } from "./docker/docker-options.js";
import type { DockerDriver } from "./docker/driver.js";
import type { Engine } from "./docker/engine/engine.js";
import { engineOf, lastingChoice } from "./docker/engine/engines.js";
import { findImage, type ImageConfig } from "./docker/image/image-config.js";
import { pullImage } from "./docker/image/pull-image.js";
import { findSaved, removeSnapshot, type SavedImage } from "./docker/image/save-image.js";
import { type KeptPlan, readKeptPlan } from "./docker/kept-plan.js";
import { DOCKER_CAPABILITIES, LiveSandbox, labelsOf, networkOf } from "./docker/live-sandbox.js";
import { checkMountsUnchanged, checkPossible, dockerOptions, unsafeOptions } from "./docker/options.js";
import { probeDocker } from "./docker/probe.js";
import { removeResource } from "./docker/resources.js";
import { sweepEngine } from "./docker/sweep.js";

export type * from "./docker/docker-options.js";

const WORK_DIR = "/workspace";

/** Sandboxes in containers of a Docker engine. */
export const docker: Backend = {
  name: "docker",
  capabilities: () => DOCKER_CAPABILITIES,
  options: dockerOptions,
  defaultImage: DEFAULT_IMAGE,
  images: ({ image }) => [image],
  unsafeOptions,

  writtenOptions: ["host", "context", "certPath", "workDir", "user", "hostname", "pull", "guest", "unsafe"],
  canOpenNetwork: () => true,
  runsHere: true,
  check: checkPossible,
  startsFromSnapshots: true,
  create: (opts, entry) => withSecrets(opts, entry, (secrets) => create(opts, entry, secrets)),
  async reopen(plan, opts, entry) {
    const kept = readKeptPlan(plan);
    checkMountsUnchanged(opts, kept.plan.mounts);
    return await withSecrets(opts, entry, async (secrets) => {
      const container = await resumeContainer(engineOf(kept.engine), kept.plan, entry.signal);
      try {
        return await new LiveSandbox(kept, opts, entry, secrets).attach(container);
      } catch (error) {
        await container.stop().catch(() => undefined);
        throw error;
      }
    });
  },
  removeResource,
  removeSnapshot,
  sweep: ({ dryRun = false, options }) => sweepEngine({ dryRun }, engineOf(options?.docker)),
  probe: probeDocker,
  conformance: { sharesNetwork: false },
};

async function create(opts: SandboxOptions, entry: SandboxEntry, secrets: LiveSecrets): Promise<DockerDriver> {
  if (entry.snapshot !== undefined) return await createFromSnapshot(entry.snapshot, opts, entry, secrets);
  const engine = engineOf(opts.docker);
  const planned = opts.repo === undefined ? undefined : await planMirror(entry.id, { ...opts, repo: opts.repo });
  const image = await imageFor(engine, opts, entry);
  const kept: KeptPlan = {
    engine: lastingChoice(opts.docker ?? {}, engine),
    plan: planContainer(entry, image, opts),
    network: opts.network ?? "none",
    imageEnv: image.env,
    layers: image.layers,
    source: planned ? `repository:${planned.base.repository.gitDir}` : `image:${image.id}`,
    ...(planned && { base: planned.base }),
  };
  return await new LiveSandbox(kept, opts, entry, secrets).create(planned?.resources);
}

/** Opens a sandbox in a container of its own. */
export function createDockerSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  return openWith(docker, opts);
}

/** Makes a container of the image that a snapshot is. What its changes are compared with is what the snapshot's are. */
async function createFromSnapshot(
  record: SnapshotRecord,
  opts: SandboxOptions,
  entry: SandboxEntry,
  secrets: LiveSecrets,
): Promise<DockerDriver> {
  const saved = record.details as SavedImage;
  const { workDir, user } = saved.kept.plan;
  const { host, context } = opts.docker ?? {};
  const { workDir: asked = opts.docker?.workDir ?? workDir } = opts;
  if (asked !== workDir) throw otherPlace(record.id, workDir);
  const choice = host === undefined && context === undefined ? saved.kept.engine : (opts.docker ?? {});
  const engine = engineOf(choice);
  const { config } = await findSaved(record.id, saved, engine);
  const own = { ...opts, workDir, docker: { user, ...opts.docker } };
  const base = saved.kept.base && { ...saved.kept.base, branch: opts.branch ?? `glovebox/${entry.id}` };
  const kept: KeptPlan = {
    ...saved.kept,
    engine: choice === saved.kept.engine ? saved.kept.engine : lastingChoice(opts.docker ?? {}, engine),
    plan: planContainer(entry, config, own),
    network: opts.network ?? "none",
    layers: config.layers,
    ...(base && { base }),
  };
  return await new LiveSandbox(kept, opts, entry, secrets).create(base && mirrorResources(base), true);
}

function planContainer(entry: SandboxEntry, image: ImageConfig, opts: SandboxOptions): ContainerPlan {
  const { user = image.user, hostname, guest, unsafe } = opts.docker ?? {};
  const { network = "none", workDir = opts.docker?.workDir ?? WORK_DIR } = opts;
  const { id, keep } = entry;
  return {
    name: `glovebox-${id}`,
    image: image.id,
    user,
    workDir,
    network: unsafe?.hostNetwork === true ? "none" : networkOf(id, { network }),
    limits: opts.limits ?? {},
    capabilities: "none",
    isKept: keep,
    labels: labelsOf(entry),
    ...(hostname !== undefined && { hostname }),
    ...(guest !== undefined && { guest }),
    ...(unsafe !== undefined && { unsafe }),
    ...(opts.mounts !== undefined && { mounts: opts.mounts }),
  };
}

async function imageFor(
  engine: Engine,
  { image: name = DEFAULT_IMAGE, docker }: { readonly image?: string; readonly docker?: DockerOptions },
  entry: Pick<SandboxEntry, "signal" | "progress">,
): Promise<ImageConfig> {
  const { signal } = entry;
  const present = await findImage(engine, name, signal);
  if (present !== undefined) return present;
  const isPulled = docker?.pull !== "never";
  if (isPulled) {
    entry.progress(`pulling the image ${name}`);
    await pullImage(engine, name, { signal }).catch((error: unknown) => {
      throw name === DEFAULT_IMAGE && !signal.aborted ? withOtherImage(error) : error;
    });
  }
  const pulled = isPulled ? await findImage(engine, name, signal) : undefined;
  if (pulled !== undefined) return pulled;
  const missing = new SandboxError("not_found", `The Docker engine has no image "${name}"`, {
    hint: `docker pull ${name}`,
  });
  throw name === DEFAULT_IMAGE ? withOtherImage(missing) : missing;
}

/** The failure to get the default image, which the user may never have heard of, with the way to choose another. */
function withOtherImage(cause: unknown): SandboxError {
  const { code, message, hint } = toSandboxError(cause);
  const other = "--image <name> (option image) uses another image, such as one that docker image ls shows";
  return new SandboxError(code, `The default image of the docker backend is not available: ${message}`, {
    cause,
    hint: hint === undefined ? other : `${hint}, or: ${other}`,
  });
}
