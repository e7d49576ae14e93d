import type { ContainerEngine, EngineContainer } from "../../contracts/container-engine.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { OwnCommand } from "./own-command.js";
import type { MemberPlan, TaskPlan } from "./task-plan.js";
import { waitUntilReady } from "./wait-for.js";

/** One container of a group that runs, and what it runs by itself. */
export interface Member {
  readonly plan: MemberPlan;
  readonly container: EngineContainer;
  readonly command: OwnCommand | undefined;
}

/** What a group is made with. */
export interface GroupParts {
  readonly engine: ContainerEngine;
  readonly labels: Readonly<Record<string, string>>;
  /** Holds back what would be too much at one time. */
  readonly limit: <T>(work: () => Promise<T>) => Promise<T>;
  /** Done with a container before it runs anything by itself. */
  fill?(plan: MemberPlan, container: EngineContainer): Promise<void>;
  /** Told when a command has ended by itself. */
  onExit(member: Member): void;
  onWarning(container: string, message: string): void;
  /** Told when a set-up failed and something of it could not be taken away; `again` tries once more. */
  onLeft(left: readonly SandboxError[], again: () => Promise<SandboxError[]>): void;
}

/** The containers of a task and their network: all of them, or nothing. */
export class ContainerGroup {
  readonly plan: TaskPlan;
  readonly networkId: string | undefined;
  readonly members: readonly Member[];
  readonly #parts: GroupParts;
  readonly #images: readonly string[];

  private constructor(plan: TaskPlan, made: Made, parts: GroupParts, images: readonly string[]) {
    this.plan = plan;
    this.networkId = made.networkId;
    this.members = made.members;
    this.#parts = parts;
    this.#images = images;
  }

  /** Makes everything that a plan names. `images` are gone with the group. */
  static async create(
    plan: TaskPlan,
    parts: GroupParts,
    signal: AbortSignal,
    images: readonly string[] = [],
  ): Promise<ContainerGroup> {
    const made: Made = { networkId: undefined, members: [] };
    try {
      await make(plan, parts, signal, made);
      return new ContainerGroup(plan, made, parts, images);
    } catch (error) {
      const clean = (): Promise<SandboxError[]> => takeAway(plan, made, parts.engine, images);
      const left = await clean();
      if (left.length > 0) parts.onLeft(left, clean);
      throw signal.aborted ? aborted(signal, error) : error;
    }
  }

  /** Runs something while no process of any of the containers runs. */
  async frozen<T>(work: () => Promise<T>): Promise<T> {
    const all = this.members.reduceRight<() => Promise<T>>(
      (inner, { container }) =>
        () =>
          container.frozen(inner),
      work,
    );
    return await all();
  }

  /** Takes everything away and gives what could not be. */
  async remove(): Promise<SandboxError[]> {
    const made = { networkId: this.networkId, members: [...this.members] };
    return await takeAway(this.plan, made, this.#parts.engine, this.#images);
  }
}

interface Made {
  networkId: string | undefined;
  members: Member[];
}

async function make(plan: TaskPlan, parts: GroupParts, signal: AbortSignal, made: Made): Promise<void> {
  const { engine, labels } = parts;
  if (plan.network !== undefined) {
    const { name, internal } = plan.network;
    made.networkId = await engine.createNetwork({ name, internal, members: plan.containers.length, labels }, signal);
  }
  // The first failure stops the others, which are waited for: nothing may be made after the clean-up has begun.
  const failing = new AbortController();
  const both = AbortSignal.any([signal, failing.signal]);
  const stopOthers = (error: unknown): never => {
    failing.abort(error);
    throw error;
  };
  await allDone(
    plan.containers.map((container) =>
      parts
        .limit(() => {
          both.throwIfAborted();
          return startMember(plan, container, made, parts, both);
        })
        .catch(stopOthers),
    ),
  );
  made.members.sort((a, b) => plan.containers.indexOf(a.plan) - plan.containers.indexOf(b.plan));
  await allDone(made.members.map((member) => becomeReady(member, both).catch(stopOthers)));
  for (const member of made.members) void member.command?.ended.then(() => parts.onExit(member));
}

async function startMember(
  plan: TaskPlan,
  container: MemberPlan,
  made: Made,
  { engine, labels, onWarning, fill }: GroupParts,
  signal: AbortSignal,
): Promise<void> {
  const { name, container: shown, hostname, user, env, limits, image, from, service } = container;
  const started = await engine.startContainer(
    {
      name,
      image: from,
      hostname,
      user,
      workingDir: image.workingDir,
      env,
      limits,
      labels,
      ...(plan.network && { network: plan.network }),
      isService: service !== undefined,
      onWarning: (message) => onWarning(shown, message),
    },
    signal,
  );
  await fill?.(container, started);
  const { command } = container;
  const own = command && new OwnCommand(await started.start(command), container.waitFor?.log);
  made.members.push({ plan: container, container: started, command: own });
}

async function becomeReady({ plan, container, command }: Member, signal: AbortSignal): Promise<void> {
  if (plan.waitFor === undefined) return;
  const { healthcheck } = plan.image;
  const waiting = {
    name: `"${plan.container}"`,
    sandbox: container.sandbox,
    command,
    ...(healthcheck && { healthcheck }),
  };
  await waitUntilReady(waiting, plan.waitFor, signal);
}

/** By the names that were chosen before: what was being made when it failed is found by them too. */
async function takeAway(
  { containers, network }: TaskPlan,
  made: Made,
  engine: ContainerEngine,
  images: readonly string[],
): Promise<SandboxError[]> {
  const left: SandboxError[] = [];
  const attempt = async (what: string, work: Promise<void>): Promise<void> => {
    await work.catch((error: unknown) => {
      left.push(
        new SandboxError("unavailable", `${what} could not be removed: ${toSandboxError(error).message}`, {
          cause: error,
        }),
      );
    });
  };
  await Promise.all(
    containers.map((plan) => {
      const member = made.members.find((each) => each.plan === plan);
      return attempt(`container ${plan.name}`, member?.container.remove() ?? engine.removeContainer(plan.name));
    }),
  );
  const others = images.map((image) => attempt(`image ${image}`, engine.removeImage(image)));
  if (network !== undefined) {
    others.push(attempt(`network ${network.name}`, engine.removeNetwork(made.networkId ?? network.name)));
  }
  await Promise.all(others);
  return left;
}

/** Waits until all of them have settled, then throws the first failure. */
export async function allDone(works: readonly Promise<unknown>[]): Promise<void> {
  const failures: unknown[] = [];
  await Promise.all(works.map((work) => work.catch((error: unknown) => void failures.push(error))));
  if (failures.length > 0) throw failures[0];
}

function aborted(signal: AbortSignal, cause: unknown): SandboxError {
  if (signal.reason instanceof SandboxError) return signal.reason;
  return new SandboxError("aborted", "The set-up of the task was aborted", { cause });
}
