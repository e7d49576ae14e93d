import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../contracts/errors.js";
import type { Finding } from "../../../contracts/finding.js";
import type { Capabilities } from "../../../contracts/types.js";
import { claimRecord, updateRecord } from "../../ledger.js";
import { assertCapabilities } from "../capabilities.js";
import { planMirror } from "../git.js";
import { keptOptions, reopenOptions } from "../kept-options.js";
import { openInTime } from "../open-in-time.js";
import { validateSandboxOptions } from "../options.js";
import { createSandbox } from "../portable.js";
import { reapRecords } from "../reap-records.js";
import type { BackendModule } from "../registry.js";
import type { DockerOptions, Sandbox, SandboxOptions } from "../types.js";
import { resumeContainer } from "./docker/container.js";
import type { ContainerPlan } from "./docker/container-config.js";
import type { Engine } from "./docker/engine/engine.js";
import { engineOf, lastingChoice } from "./docker/engine/engines.js";
import { findImage, type ImageConfig } from "./docker/image/image-config.js";
import { pullImage } from "./docker/image/pull-image.js";
import type { KeptPlan } from "./docker/kept-plan.js";
import { KEPT_LABEL, ownerLabels, SANDBOX_LABEL } from "./docker/labels.js";
import {
  DOCKER_CAPABILITIES,
  LiveSandbox,
  makeSandbox,
  networkOf,
  newSandboxId,
  ownRemover,
} from "./docker/live-sandbox.js";
import { checkDockerOptions, checkPossible } from "./docker/options.js";
import { probeDocker } from "./docker/probe.js";
import { sweepEngine } from "./docker/sweep.js";

export { removeSnapshot } from "./docker/image/save-image.js";
export { removeResource } from "./docker/resources.js";
export { sweepEngine as sweep } from "./docker/sweep.js";

const WORK_DIR = "/workspace";

/** What the conformance kit is to know about the backend. */
export const conformance: NonNullable<BackendModule["conformance"]> = { sharesNetwork: false };

/** Refuses what a container can never keep. */
export function check(opts: SandboxOptions): void {
  checkPossible(opts, checkDockerOptions(opts));
}

/** Opens a sandbox in a container of its own. */
export async function createDockerSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  validateSandboxOptions(opts);
  return await openInTime("docker", opts, async (inTime) => {
    const docker = checkDockerOptions(inTime);
    checkPossible(inTime, docker);
    assertCapabilities(inTime, DOCKER_CAPABILITIES, "docker");
    const engine = engineOf(docker);
    await reapOnce(engine);
    return inTime.id === undefined ? await createNew(engine, inTime, docker) : await reopen(inTime.id, inTime);
  });
}

/** What every container keeps. */
export function capabilities(): Capabilities {
  return DOCKER_CAPABILITIES;
}

/** What the registry calls. */
export function open(opts: SandboxOptions): Promise<Sandbox> {
  return createDockerSandbox(opts);
}

/** Looks at what the docker backend needs on this machine. */
export function probe(): Promise<Finding[]> {
  return probeDocker();
}

async function createNew(engine: Engine, opts: SandboxOptions, docker: DockerOptions): Promise<Sandbox> {
  const { signal, repo, keep = false } = opts;
  const id = newSandboxId();
  const planned = repo === undefined ? undefined : await planMirror(id, { ...opts, repo });
  const image = await imageFor(engine, opts.image ?? "", docker, signal);
  const network = opts.network ?? "none";
  const { user = image.user, workDir = WORK_DIR, hostname, guest, unsafe } = docker;
  const plan: ContainerPlan = {
    name: `glovebox-${id}`,
    image: image.id,
    user,
    workDir,
    network: unsafe?.hostNetwork === true ? "none" : networkOf(id, { network }),
    limits: opts.limits ?? {},
    capabilities: "none",
    isKept: keep,
    labels: { ...ownerLabels(), [SANDBOX_LABEL]: id, ...(keep && { [KEPT_LABEL]: "1" }) },
    ...(hostname !== undefined && { hostname }),
    ...(guest !== undefined && { guest }),
    ...(unsafe !== undefined && { unsafe }),
    ...(opts.mounts !== undefined && { mounts: opts.mounts }),
  };
  const kept: KeptPlan = {
    engine: lastingChoice(docker, engine),
    plan,
    network,
    imageEnv: image.env,
    layers: image.layers,
    options: keptOptions(opts),
    source: planned ? `repository:${planned.base.repository.gitDir}` : `image:${image.id}`,
    ...(planned && { base: planned.base }),
  };
  return createSandbox(await makeSandbox(id, kept, opts, { resources: planned?.resources ?? [] }), opts);
}

async function imageFor(
  engine: Engine,
  name: string,
  { pull }: DockerOptions,
  signal?: AbortSignal,
): Promise<ImageConfig> {
  const present = await findImage(engine, name, signal);
  if (present !== undefined) return present;
  if (pull !== "never") await pullImage(engine, name, { signal });
  const pulled = pull === "never" ? undefined : await findImage(engine, name, signal);
  if (pulled !== undefined) return pulled;
  throw new SandboxError("not_found", `The Docker engine has no image "${name}"`, { hint: `docker pull ${name}` });
}

async function reopen(id: string, given: SandboxOptions): Promise<Sandbox> {
  const record = await claimRecord(id);
  try {
    if (record.backend !== "docker") {
      throw new SandboxError("invalid_argument", `Sandbox "${id}" is of the backend ${record.backend}`);
    }
    const kept = record.reopen as KeptPlan;
    const { mounts, limits } = kept.plan;
    const opts = reopenOptions(given, kept.options, { network: kept.network, limits, isolation: "required" });
    if (opts.mounts !== undefined && !isDeepStrictEqual(opts.mounts, mounts)) {
      throw new SandboxError("unsupported", "The mounts of a container cannot be changed", {
        hint: "leave mounts out, or make another sandbox",
      });
    }
    const container = await resumeContainer(engineOf(kept.engine), kept.plan, opts.signal);
    const live = new LiveSandbox(id, kept, { ...opts, keep: opts.keep ?? true });
    return createSandbox(await live.attach(container), opts);
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

let reaped: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox. */
async function reapOnce(engine: Engine): Promise<void> {
  // What could not be removed is no reason not to go on: it stays in the ledger, where `listSandboxes` shows it.
  reaped ??= Promise.all([
    reapRecords(ownRemover, { backend: "docker" }).catch(() => undefined),
    sweepEngine({}, engine).catch(() => undefined),
  ]);
  await reaped;
}
