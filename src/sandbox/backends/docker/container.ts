import { SandboxError } from "../../../../contracts/errors.js";
import { GuestChannel } from "../../guest.js";
import { type ContainerPlan, containerConfig } from "./container-config.js";
import { forgetVolume, guestMount, restoreProgram } from "./deliver-guest.js";
import { AttachedStream } from "./engine/attached-stream.js";
import type { Engine } from "./engine/engine.js";
import { EngineError } from "./engine/engine-error.js";
import { leaveContainer, removeContainer } from "./remove-container.js";
import { verifyLimits } from "./verify-limits.js";

const START_TIMEOUT = 30_000;

/** A container whose first process is the guest. When the channel to it closes, the container ends. */
export interface RunningContainer {
  readonly engine: Engine;
  readonly plan: ContainerPlan;
  /** The engine's id for it. */
  readonly id: string;
  readonly channel: GuestChannel;
  /** Ends all processes. The engine then removes the container unless it is kept. */
  stop(): Promise<void>;
  /** Removes it, even if it is kept. */
  remove(): Promise<void>;
}

/** Creates a container and starts it. Leaves nothing when it fails. */
export async function startContainer(
  engine: Engine,
  plan: ContainerPlan,
  signal?: AbortSignal,
): Promise<RunningContainer> {
  signal?.throwIfAborted();
  try {
    // Without the signal: the engine would still create it.
    const id = await createContainer(engine, plan);
    signal?.throwIfAborted();
    return await hold(engine, plan, id, signal);
  } catch (error) {
    await removeContainer(engine, plan.name).catch(() => undefined);
    throw error;
  }
}

/** Starts an existing container, and ends it first if it is still running. */
export async function resumeContainer(
  engine: Engine,
  plan: ContainerPlan,
  signal?: AbortSignal,
): Promise<RunningContainer> {
  const found = await engine.call<{
    Id: string;
    State: { Running: boolean };
    Mounts: Parameters<typeof restoreProgram>[1];
  }>("GET", `/containers/${plan.name}/json`, { signal });
  // Nobody is attached any more, but on a busy machine it may not have ended yet, and its guest would not greet us.
  if (found.State.Running) await endContainer(engine, found.Id, signal);
  await restoreProgram(engine, found.Mounts);
  return await hold(engine, plan, found.Id, signal);
}

async function endContainer(engine: Engine, id: string, signal: AbortSignal | undefined): Promise<void> {
  await engine.call("POST", `/containers/${id}/kill`, { signal }).catch(ignoreStopped);
  await engine.call("POST", `/containers/${id}/wait`, { query: { condition: "not-running" }, signal });
}

async function hold(engine: Engine, plan: ContainerPlan, id: string, signal?: AbortSignal): Promise<RunningContainer> {
  const path = `/containers/${id}`;
  // Attach before the start: the greeting must not be missed, and nothing may run that nobody is attached to.
  const socket = await engine.hijack(`${path}/attach`, {
    query: { stream: true, stdin: true, stdout: true, stderr: true },
    signal,
  });
  const stream = new AttachedStream(socket);
  const channel = new GuestChannel(stream);
  const onAbort = (): void => channel.close(new SandboxError("aborted", "the creation of the sandbox was aborted"));
  const late = setTimeout(
    () => channel.close(new SandboxError("unavailable", `The container ${plan.name} did not start in time`)),
    START_TIMEOUT,
  );
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await engine.call("POST", `${path}/start`, { signal });
    const hello = await channel.hello;
    if (hello.complaint !== "" && !isOpened(plan)) {
      throw new SandboxError("no_isolation", `the self-test of the container failed: ${hello.complaint}`);
    }
    await verifyLimits(engine, id, plan.limits, signal);
  } catch (error) {
    channel.close();
    throw explain(error, stream.complaint, plan);
  } finally {
    clearTimeout(late);
    signal?.removeEventListener("abort", onAbort);
  }
  channel.unref();
  const stop = async (): Promise<void> => {
    channel.close();
    await engine.call("POST", `${path}/kill`, {}).catch(ignoreStopped);
  };
  const remove = async (): Promise<void> => {
    if (!plan.isKept) return await leaveContainer(engine, plan.name, () => channel.close());
    channel.close();
    await removeContainer(engine, plan.name);
  };
  return { engine, plan, id, channel, stop, remove };
}

async function createContainer(engine: Engine, plan: ContainerPlan): Promise<string> {
  const create = async (how: ContainerPlan["guest"]): Promise<string> => {
    const body = containerConfig(plan, await guestMount(engine, plan.image, how));
    const { Id } = await engine.call<{ Id: string }>("POST", "/containers/create", {
      query: { name: plan.name },
      body,
    });
    return Id;
  };
  try {
    return await create(plan.guest);
  } catch (error) {
    if (!(error instanceof EngineError) || plan.guest === "bind") throw error;
    // The engine listens on a socket here, but doesn't see the files of this machine.
    if (/bind source path does not exist.*glovebox-guest/.test(error.message)) return await create("volume");
    forgetVolume(engine);
    throw error;
  }
}

/** Whether an unsafe option was asked for, which the self-test rightly reports. */
function isOpened({ unsafe = {} }: ContainerPlan): boolean {
  return Object.values(unsafe).some((value) => (Array.isArray(value) ? value.length > 0 : value === true));
}

/** When the guest never said hello, what it wrote is the reason. */
function explain(error: unknown, complaint: string, { image }: ContainerPlan): unknown {
  if (!(error instanceof SandboxError) || error.code !== "backend_lost" || complaint === "") return error;
  const what = complaint.replace(/^glovebox: /, "").slice(0, 500);
  return new SandboxError("invalid_argument", `A container of "${image}" cannot be used: ${what}`, { cause: error });
}

/** 404: gone; 409: not running. Both are fine. */
function ignoreStopped(error: unknown): void {
  if (!(error instanceof EngineError) || (error.status !== 404 && error.status !== 409)) throw error;
}
