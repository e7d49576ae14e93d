import type { ContainerEngine, EngineContainer } from "../../contracts/container-engine.js";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { OwnCommand } from "./own-command.js";
import type { MemberPlan, TaskPlan } from "./task-plan.js";
import { waitUntilReady } from "./wait-for.js";

/** A running container of a group, and its own command. */
export interface Member {
  readonly plan: MemberPlan;
  readonly container: EngineContainer;
  readonly command: OwnCommand | undefined;
}

/** What a group needs from its batch. */
export interface GroupParts {
  readonly engine: ContainerEngine;
  readonly labels: Readonly<Record<string, string>>;
  /** Limits how many containers start at the same time. */
  readonly limit: <T>(work: () => Promise<T>) => Promise<T>;
  /** Fills a container before its own command starts. */
  fill?(plan: MemberPlan, container: EngineContainer): Promise<void>;
  /** Called when a container's own command has ended. */
  onExit(member: Member): void;
  onWarning(container: string, message: string): void;
  /** Called when a setup has failed and some of it could not be removed. `again` retries. */
  onLeft(left: readonly SandboxError[], again: () => Promise<SandboxError[]>): void;
}

/** The containers of a task and their network. Either all of them exist, or none. */
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

  /** Creates everything in a plan. `images` are removed together with the group. */
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
      const clean = (): Promise<SandboxError[]> => removeAll(plan, made, parts.engine, images);
      const left = await clean();
      if (left.length > 0) parts.onLeft(left, clean);
      throw signal.aborted ? aborted(signal, error) : error;
    }
  }

  /** Runs `work` while every process in every container is stopped. */
  async frozen<T>(work: () => Promise<T>): Promise<T> {
    const all = this.members.reduceRight<() => Promise<T>>(
      (inner, { container }) =>
        () =>
          container.frozen(inner),
      work,
    );
    return await all();
  }

  /** Removes everything and returns what could not be removed. */
  async remove(): Promise<SandboxError[]> {
    const made = { networkId: this.networkId, members: [...this.members] };
    return await removeAll(this.plan, made, this.#parts.engine, this.#images);
  }
}

interface Made {
  networkId: string | undefined;
  members: Member[];
}

async function make(plan: TaskPlan, parts: GroupParts, signal: AbortSignal, made: Made): Promise<void> {
  const { engine, labels } = parts;
  const groups = arrange(plan, engine);
  if (plan.network !== undefined) {
    const { name, internal } = plan.network;
    made.networkId = await engine.createNetwork({ name, internal, members: plan.containers.length, labels }, signal);
  }
  // The first failure stops the others and waits for them: nothing may be created once the clean-up has started.
  const failing = new AbortController();
  const both = AbortSignal.any([signal, failing.signal]);
  const stopOthers = (error: unknown): never => {
    failing.abort(error);
    throw error;
  };
  for (const group of groups) {
    await allDone(
      group.map((container) =>
        parts
          .limit(() => {
            both.throwIfAborted();
            return startMember(plan, container, made, parts, both);
          })
          .catch(stopOthers),
      ),
    );
  }
  made.members.sort((a, b) => plan.containers.indexOf(a.plan) - plan.containers.indexOf(b.plan));
  await allDone(made.members.map((member) => becomeReady(member, both).catch(stopOthers)));
  for (const member of made.members) void member.command?.ended.then(() => parts.onExit(member));
}

/** The containers in the order in which the engine starts them. Throws what it refuses. */
function arrange({ containers, network }: TaskPlan, engine: ContainerEngine): MemberPlan[][] {
  const planned = containers.map(({ request, command }) => ({ ...request, command }));
  const names = engine.arrange?.(planned, network);
  if (names === undefined) return [[...containers]];
  return names.map((group) => containers.filter(({ request }) => group.includes(request.name)));
}

async function startMember(
  plan: TaskPlan,
  container: MemberPlan,
  made: Made,
  { engine, labels, onWarning, fill }: GroupParts,
  signal: AbortSignal,
): Promise<void> {
  const { request, command, waitFor } = container;
  const warn = (message: string): void => onWarning(container.container, message);
  const network = plan.network && { network: plan.network };
  const started = await engine.startContainer({ ...request, ...network, labels, onWarning: warn }, signal);
  await fill?.(container, started);
  const own = command && new OwnCommand(await started.start(command), waitFor?.log);
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

/** Removes by the planned names, which also finds what was half created when the setup failed. */
async function removeAll(
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
      const { name } = plan.request;
      return attempt(`container ${name}`, member?.container.remove() ?? engine.removeContainer(name));
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
  return new SandboxError("aborted", "The setup of the task was aborted", { cause });
}
