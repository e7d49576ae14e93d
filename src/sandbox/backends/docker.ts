import type { Backend } from "../../../contracts/backend.js";
import { SandboxError } from "../../../contracts/errors.js";
import { planMirror } from "../git.js";
import { openWith } from "../lifecycle.js";
import type { Sandbox, SandboxOptions } from "../types.js";
import { resumeContainer } from "./docker/container.js";
import type { ContainerPlan } from "./docker/container-config.js";
import type { DockerOptions } from "./docker/docker-options.js";
import type { Engine } from "./docker/engine/engine.js";
import { engineOf, lastingChoice } from "./docker/engine/engines.js";
import { findImage, type ImageConfig } from "./docker/image/image-config.js";
import { pullImage } from "./docker/image/pull-image.js";
import { removeSnapshot } from "./docker/image/save-image.js";
import { type KeptPlan, readKeptPlan } from "./docker/kept-plan.js";
import { DOCKER_CAPABILITIES, LiveSandbox, labelsOf, networkOf } from "./docker/live-sandbox.js";
import { checkMountsUnchanged, checkPossible, dockerOptions } from "./docker/options.js";
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
  writtenOptions: ["host", "context", "certPath", "workDir", "user", "hostname", "pull", "guest", "unsafe"],
  runsHere: true,
  check: checkPossible,
  async create(opts, entry) {
    const engine = engineOf(opts.docker);
    const planned = opts.repo === undefined ? undefined : await planMirror(entry.id, { ...opts, repo: opts.repo });
    const image = await imageFor(engine, opts, entry.signal);
    const kept: KeptPlan = {
      engine: lastingChoice(opts.docker ?? {}, engine),
      plan: planContainer(entry, image, opts),
      network: opts.network ?? "none",
      imageEnv: image.env,
      layers: image.layers,
      source: planned ? `repository:${planned.base.repository.gitDir}` : `image:${image.id}`,
      ...(planned && { base: planned.base }),
    };
    return await new LiveSandbox(kept, opts, entry).create(planned?.resources);
  },
  async reopen(plan, opts, entry) {
    const kept = readKeptPlan(plan);
    checkMountsUnchanged(opts, kept.plan.mounts);
    const container = await resumeContainer(engineOf(kept.engine), kept.plan, entry.signal);
    return await new LiveSandbox(kept, opts, entry).attach(container);
  },
  removeResource,
  removeSnapshot,
  sweep: ({ dryRun = false, options }) => sweepEngine({ dryRun }, engineOf(options?.docker)),
  probe: probeDocker,
  conformance: { sharesNetwork: false },
};

/** Opens a sandbox in a container of its own. */
export function createDockerSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  return openWith(docker, opts);
}

function planContainer(
  { id, keep }: { readonly id: string; readonly keep: boolean },
  image: ImageConfig,
  opts: SandboxOptions,
): ContainerPlan {
  const { user = image.user, workDir = WORK_DIR, hostname, guest, unsafe } = opts.docker ?? {};
  const { network = "none" } = opts;
  return {
    name: `glovebox-${id}`,
    image: image.id,
    user,
    workDir,
    network: unsafe?.hostNetwork === true ? "none" : networkOf(id, { network }),
    limits: opts.limits ?? {},
    capabilities: "none",
    isKept: keep,
    labels: labelsOf(id, keep),
    ...(hostname !== undefined && { hostname }),
    ...(guest !== undefined && { guest }),
    ...(unsafe !== undefined && { unsafe }),
    ...(opts.mounts !== undefined && { mounts: opts.mounts }),
  };
}

async function imageFor(
  engine: Engine,
  { image: name = "", docker }: { readonly image?: string; readonly docker?: DockerOptions },
  signal: AbortSignal,
): Promise<ImageConfig> {
  const present = await findImage(engine, name, signal);
  if (present !== undefined) return present;
  if (docker?.pull !== "never") await pullImage(engine, name, { signal });
  const pulled = docker?.pull === "never" ? undefined : await findImage(engine, name, signal);
  if (pulled !== undefined) return pulled;
  throw new SandboxError("not_found", `The Docker engine has no image "${name}"`, { hint: `docker pull ${name}` });
}
