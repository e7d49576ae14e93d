import type { ContainerRequest, PlannedContainer } from "../../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../../contracts/errors.js";

/** Variables whose whole value may be the name of a machine. */
const NAMES_A_HOST = /HOST|ADDR|SERVER|ENDPOINT|UR[IL]|PEER|UPSTREAM|BROKER|NODES?$/i;

/**
 * Refuses what a pod can't keep, and puts the containers of a task in order: a pod finds only those pods by name that have an address when it is made. A
 * service comes after those that its variables or its command name, the agent's container last.
 */
export function arrange(
  containers: readonly PlannedContainer[],
  network?: ContainerRequest["network"],
): readonly (readonly string[])[] {
  for (const container of containers) refuse(container);
  const services = containers.filter(({ isService }) => isService);
  const agents = containers.filter(({ isService }) => !isService);
  const groups = network === undefined ? [services] : [...inOrder(services, agents)];
  return [...groups, agents].filter(({ length }) => length > 0).map((group) => group.map(({ name }) => name));
}

function refuse({ hostname, user, limits: { pids } }: PlannedContainer): void {
  if (pids !== undefined) {
    throw unsupported(
      `limits.pids ${pids} of "${hostname}"`,
      "only the kubelet's own setting bounds the processes of a pod",
      {
        hint: "leave limits.pids out",
      },
    );
  }
  if (user !== "" && !/^\d+(:\d+)?$/.test(user)) {
    throw unsupported(`the user "${user}" of "${hostname}"`, "a pod's user is a number", {
      hint: "give the numbers of the user and the group, such as 999:999; without user, the image's own is used",
    });
  }
}

function* inOrder(
  services: readonly PlannedContainer[],
  agents: readonly PlannedContainer[],
): Generator<PlannedContainer[]> {
  for (const agent of agents) {
    const early = services.find((service) => needs(service, agent.hostname));
    if (early !== undefined) throw tooEarly(early, agent, "the agent's container starts last");
  }
  let left = [...services];
  while (left.length > 0) {
    const isFree = (of: (service: PlannedContainer, host: string) => boolean) => (service: PlannedContainer) =>
      !left.some((other) => other !== service && of(service, other.hostname));
    // A word that only looks like the name of another service holds nothing up.
    const group = [left.filter(isFree(mentions)), left.filter(isFree(needs))].find(({ length }) => length > 0);
    if (group === undefined) {
      const [first] = left;
      const other = left.find((each) => each !== first && first !== undefined && needs(first, each.hostname));
      throw tooEarly(first, other, "they need each other");
    }
    yield group;
    left = left.filter((service) => !group.includes(service));
  }
}

/** Whether a service names a host where only a host is named: in an address, or as the value of a variable for one. */
function needs({ env, command = [] }: PlannedContainer, host: string): boolean {
  const name = escaped(host);
  const address = new RegExp(`(//|@)${name}(?=[:/?#,\\s"']|$)|(^|[\\s"'=,;(])${name}:\\d`);
  const list = new RegExp(`(^|[,;\\s])${name}(?=[,;\\s]|$)`);
  const isOption = command.some(
    (word, index) => word === host && /^(-h|--host(name)?)$/.test(command[index - 1] ?? ""),
  );
  return (
    isOption ||
    command.some((word) => address.test(word)) ||
    Object.entries(env).some(([key, value]) => address.test(value) || (NAMES_A_HOST.test(key) && list.test(value)))
  );
}

/** The same, or any word of its command. */
function mentions(service: PlannedContainer, host: string): boolean {
  const word = new RegExp(`(^|[\\s"'=,;(@/])${escaped(host)}(?=[\\s"',;):/]|$)`);
  return needs(service, host) || (service.command ?? []).some((text) => word.test(text));
}

function escaped(text: string): string {
  return text.replace(/[.\\-]/g, "\\$&");
}

function tooEarly(early: PlannedContainer | undefined, late: PlannedContainer | undefined, why: string): SandboxError {
  const what = `that "${early?.hostname}" reaches "${late?.hostname}" by name`;
  return unsupported(what, `a pod finds only those by name that started before it, and ${why}`, {
    hint: "let one of them learn the other's address later, or run the task on Docker",
  });
}

function unsupported(what: string, why: string, more: { hint: string }): SandboxError {
  return new SandboxError("unsupported", `The kubernetes backend can't keep ${what}: ${why}`, {
    backend: "kubernetes",
    ...more,
  });
}
