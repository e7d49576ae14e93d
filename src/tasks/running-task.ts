import type { EngineContainer } from "../../contracts/container-engine.js";
import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../sandbox/types.js";
import type { ContainerGroup, Member } from "./container-group.js";
import type { CommandStatus, SandboxState, Task } from "./types.js";

/** A task whose containers are running. */
export class RunningTask implements Task {
  readonly taskId: string;
  readonly state: SandboxState;
  readonly agent: Sandbox;
  readonly services: Readonly<Record<string, Sandbox>>;
  readonly group: ContainerGroup;
  readonly #remove: (task: RunningTask) => Promise<boolean>;
  #teardown: Promise<void> | undefined;

  /** `remove` never throws; it returns whether everything of the task is gone. */
  constructor(group: ContainerGroup, remove: (task: RunningTask) => Promise<boolean>) {
    const [agent, ...services] = group.members;
    if (agent === undefined) throw new SandboxError("internal", "A task has no container");
    this.group = group;
    this.#remove = remove;
    this.taskId = group.plan.taskId;
    this.agent = agent.container.sandbox;
    const byService = <T>(pick: (container: EngineContainer) => T): Readonly<Record<string, T>> =>
      Object.freeze(Object.fromEntries(services.map(({ plan, container }) => [plan.service ?? "", pick(container)])));
    this.services = byService(({ sandbox }) => sandbox);
    this.state = Object.freeze({
      taskId: this.taskId,
      agentContainerId: agent.container.id,
      serviceContainers: byService(({ id }) => id),
      executionId: group.plan.executionId,
      ...(group.networkId !== undefined && { networkId: group.networkId }),
    });
  }

  status(service?: string): CommandStatus {
    const { command } = this.#member(service);
    return command?.status ?? { running: false, logs: "" };
  }

  teardown(): Promise<void> {
    this.#teardown ??= this.#remove(this).then((isGone) => {
      if (!isGone) this.#teardown = undefined;
    });
    return this.#teardown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.teardown();
  }

  #member(service: string | undefined): Member {
    const found = this.group.members.find(({ plan }) => plan.service === service);
    if (found !== undefined) return found;
    const known = Object.keys(this.services).join(", ") || "none";
    throw new SandboxError("not_found", `The task "${this.taskId}" has no service "${service}"`, {
      hint: `its services: ${known}`,
    });
  }
}
