import { SandboxError } from "../../contracts/errors.js";
import {
  arrayOf,
  type Check,
  checkEnv,
  checkOptions,
  checkText,
  checkTimeout,
  invalidArgument,
  type Shape,
  whole,
} from "../util/checks.js";
import { checkImageSpec } from "./check-image.js";
import type { ContainerSetup, TaskSetup, WaitFor } from "./types.js";

/** As RFC 1123 has it: what a name server can answer for. */
const HOSTNAME = /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-)){0,3}$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
/** Names that resolve to something else wherever they are asked for. */
const TAKEN_HOSTNAMES = ["localhost", "host.docker.internal", "gateway.docker.internal"];
const MAX_SERVICES = 60;

const checkName: Check = (value, name) => {
  if (typeof value === "string" && NAME.test(value) && !value.includes("..")) return;
  throw invalidArgument(name, "letters, digits, dots, dashes and underscores, 63 at most", value);
};

const checkHostname: Check = (value, name) => {
  if (typeof value !== "string" || !HOSTNAME.test(value)) {
    throw invalidArgument(name, "a host name of small letters, digits and dashes", value);
  }
  if (TAKEN_HOSTNAMES.includes(value)) throw invalidArgument(name, "a host name that means nothing else", value);
};

/** A command as text or as arguments. */
export const checkCommand: Check = (value, name) => {
  if (typeof value === "string") return checkText(value, name);
  if (!Array.isArray(value) || value.length === 0) {
    throw invalidArgument(name, "a string or a non-empty array of strings", value);
  }
  arrayOf((part, where) => {
    if (typeof part !== "string" || part.includes("\0")) throw invalidArgument(where, "a string without NUL", part);
  })(value, name);
  if (value[0] === "") throw invalidArgument(`${name}[0]`, "the name of a program", "");
};

const checkUser: Check = (value, name) => {
  if (
    typeof value !== "string" ||
    !/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$/.test(value)
  )
    throw invalidArgument(name, "the name or number of a user", value);
};

const positive = whole(1, Number.MAX_SAFE_INTEGER);
const limitsShape: Shape = new Map<string, Check>([
  ["memory", positive],
  ["pids", positive],
  [
    "cpus",
    (value, name) => {
      if (typeof value === "number" && Number.isFinite(value) && value > 0) return;
      throw invalidArgument(name, "a number of cores above zero", value);
    },
  ],
]);

const waitShape: Shape = new Map<string, Check>([
  ["port", whole(1, 65_535)],
  ["log", checkText],
  ["command", checkCommand],
  [
    "health",
    (value, name) => {
      if (value !== true) throw invalidArgument(name, "true, or nothing", value);
    },
  ],
  ["timeout", checkTimeout],
]);

const checkWaitFor: Check = (value, name) => {
  checkOptions(value, waitShape, name);
  const { timeout: _, ...conditions } = value as WaitFor;
  if (Object.values(conditions).every((condition) => condition === undefined)) {
    throw invalidArgument(name, "at least one of port, log, command and health", value);
  }
};

const specShape: Shape = new Map<string, Check>([
  ["imageSpec", checkImageSpec],
  ["hostname", checkHostname],
  ["environment", checkEnv],
  ["command", checkCommand],
  ["user", checkUser],
  ["limits", (value, name) => checkOptions(value, limitsShape, name)],
  ["waitFor", checkWaitFor],
]);

const containerShape: Shape = new Map<string, Check>([
  ["name", checkName],
  [
    "spec",
    (value, name) => {
      checkOptions(value, specShape, name);
      checkImageSpec((value as { imageSpec?: unknown }).imageSpec, `${name}.imageSpec`);
    },
  ],
]);

const checkContainer: Check = (value, name) => {
  checkOptions(value, containerShape, name);
  const { name: own, spec } = value as Partial<ContainerSetup>;
  checkName(own, `${name}.name`);
  if (spec === undefined) throw invalidArgument(`${name}.spec`, "an object", spec);
};

const networkShape: Shape = new Map<string, Check>([
  ["name", checkName],
  [
    "internal",
    (value, name) => {
      if (typeof value !== "boolean") throw invalidArgument(name, "true or false", value);
    },
  ],
]);

const checkServices: Check = (value, name) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(name, "an object of containers", value);
  }
  const entries = Object.entries(value);
  if (entries.length > MAX_SERVICES) throw invalidArgument(name, `at most ${MAX_SERVICES} services`, entries.length);
  for (const [key, container] of entries) {
    checkName(key, `the name of a service in ${name}`);
    checkContainer(container, `${name}.${key}`);
  }
};

const setupShape: Shape = new Map<string, Check>([
  ["taskId", checkTaskId],
  ["agentContainer", checkContainer],
  ["serviceContainers", checkServices],
  [
    "networkConfig",
    (value, name) => {
      checkOptions(value, networkShape, name);
      checkName((value as { name?: unknown }).name, `${name}.name`);
    },
  ],
]);

function checkTaskId(value: unknown, name: string): void {
  checkText(value, name);
  if (value.length > 200) throw invalidArgument(name, "at most 200 characters", value);
  if (value.split(/[/\\]/).includes("..")) throw invalidArgument(name, 'a name without ".."', value);
}

/** Refuses a task that could not be set up, before anything of it is made. */
export function checkSetup(setup: unknown, name: string, networkEnabled: boolean): asserts setup is TaskSetup {
  checkOptions(setup, setupShape, name);
  const given = setup as Partial<TaskSetup>;
  checkTaskId(given.taskId, `${name}.taskId`);
  checkContainer(given.agentContainer, `${name}.agentContainer`);
  checkNames(given as TaskSetup, name);
  if (given.networkConfig?.internal === false && !networkEnabled) {
    throw new SandboxError(
      "invalid_argument",
      `${name}.networkConfig.internal is false, but the manager has no network`,
      {
        hint: "createSandboxManager({ networkEnabled: true }) lets tasks reach other machines",
      },
    );
  }
}

/** A name that stands for two containers would reach either. */
function checkNames({ agentContainer, serviceContainers = {} }: TaskSetup, name: string): void {
  const names = new Map([[agentContainer.name, "the agent's container"]]);
  const hosts = new Map([[hostnameOf(agentContainer), "the agent's container"]]);
  for (const [key, container] of Object.entries(serviceContainers)) {
    const other = names.get(container.name);
    if (other !== undefined) throw twice("container", container.name, other, key, name);
    names.set(container.name, `the service "${key}"`);
    const host = hostnameOf(container);
    const namesake = hosts.get(host);
    if (namesake !== undefined) throw twice("hostname", host, namesake, key, name);
    hosts.set(host, `the service "${key}"`);
  }
}

function twice(what: string, value: string, first: string, second: string, name: string): SandboxError {
  return new SandboxError(
    "invalid_argument",
    `The ${what} "${value}" is given twice in ${name}: for ${first} and for the service "${second}"`,
    { hint: `give one of them another ${what === "container" ? "name" : what}` },
  );
}

/** The name that the other containers of a task reach this one by. */
export function hostnameOf({ name, spec }: ContainerSetup): string {
  return (
    spec.hostname ??
    (name
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, "-")
      .replace(/^-+|-+$/g, "") ||
      "x")
  );
}
