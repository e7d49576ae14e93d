import { SandboxError } from "../../contracts/errors.js";
import * as is from "../util/schema.js";
import { check, DURATION_PATTERN, type Fields, invalidArgument, parseDuration, type Schema } from "../util/schema.js";
import { imageSpec } from "./check-image.js";
import type { ContainerSetup, ContainerSpec, NetworkConfig, TaskSetup, WaitFor } from "./types.js";

/** Names that resolve to something else wherever they are asked for. */
const TAKEN_HOSTNAMES = ["localhost", "host.docker.internal", "gateway.docker.internal"];
const MAX_SERVICES = 60;

const name = is.matching(
  /^(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/,
  "letters, digits, dots, dashes and underscores, 63 at most",
);

/** As RFC 1123 has it: what a name server can answer for. */
const hostname = is.and(
  is.matching(
    /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-)){0,3}$/,
    "a host name of small letters, digits and dashes",
    { description: "Name that the other containers reach it by." },
  ),
  (value, where) => {
    if (TAKEN_HOSTNAMES.includes(value)) throw invalidArgument(where, "a host name that means nothing else", value);
  },
);

const NEITHER = "a string or a non-empty array of strings";
const words: Schema<readonly string[]> = is.list(
  is.and(is.string({}, "a string without NUL"), is.withoutNul),
  { minItems: 1 },
  NEITHER,
);

/** A command as text or as arguments. */
export const command: Schema<string | readonly string[]> = is.noted(
  is.and(is.union(NEITHER, is.text, words), (value, where) => {
    if (value[0] === "") throw invalidArgument(`${where}[0]`, "the name of a program", "");
  }),
  { description: "Text for /bin/sh, or a program and its arguments." },
);

/** A time as files have it. */
export type WrittenTime = number | string;

/** A time in a file: with its unit, or in milliseconds. */
export function writtenTime(description: string): Schema<WrittenTime> {
  const form = is.scalar(["string", "integer"], { pattern: DURATION_PATTERN, minimum: 1, description });
  return is.and(form, (value, where) => {
    if (parseDuration(value) !== undefined) return;
    throw invalidArgument(where, "a time such as 90s or 10m, or whole milliseconds", value);
  });
}

interface WrittenWaitFor extends Omit<WaitFor, "timeout"> {
  timeout?: WrittenTime;
}
interface WrittenSpec extends Omit<ContainerSpec, "waitFor"> {
  waitFor?: WrittenWaitFor;
}
/** A container as files have it. */
export interface WrittenContainer extends Omit<ContainerSetup, "spec"> {
  spec: WrittenSpec;
}
/** A task as files have it. */
export interface WrittenSetup extends Omit<TaskSetup, "agentContainer" | "serviceContainers"> {
  agentContainer: WrittenContainer;
  serviceContainers?: Readonly<Record<string, WrittenContainer>>;
}

const waitForWith = (timeout: Schema<WrittenTime>): Schema<WrittenWaitFor> =>
  is.and(
    is.object<WrittenWaitFor>(
      { port: is.port, log: is.text, command, health: is.literal(true, "true, or nothing"), timeout },
      {
        description: "When the container counts as ready: once all of these are true.",
        anyOf: ["port", "log", "command", "health"].map((condition) => ({ required: [condition] })),
      },
    ),
    (value, where) => {
      const { timeout: _, ...conditions } = value;
      if (Object.values(conditions).some((condition) => condition !== undefined)) return;
      throw invalidArgument(where, "at least one of port, log, command and health", value);
    },
  );

const containerWith = (timeout: Schema<WrittenTime>): Schema<WrittenContainer> =>
  is.object<WrittenContainer>({
    name: is.required(name),
    spec: is.required(
      is.object<WrittenSpec>({
        imageSpec: is.required(imageSpec),
        hostname,
        environment: is.env,
        command,
        user: is.matching(
          /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$/,
          "the name or number of a user",
        ),
        limits: is.object({
          memory: is.noted(is.positive, { description: "Bytes." }),
          pids: is.positive,
          cpus: is.cores,
        }),
        waitFor: waitForWith(timeout),
      }),
    ),
  });

const serviceName = is.custom<string>((value, where) => check(value, name, `the name of a service in ${where}`), name);

const taskId = is.and(
  is.string({ minLength: 1, maxLength: 200 }, { maxLength: "at most 200 characters" }),
  (value, where) => {
    check(value, is.text, where);
    if (value.split(/[/\\]/).includes("..")) throw invalidArgument(where, 'a name without ".."', value);
  },
);

const fieldsWith = (container: Schema<WrittenContainer>): Fields<WrittenSetup> => ({
  taskId: is.required(taskId),
  agentContainer: is.required(container),
  serviceContainers: is.record(
    container,
    serviceName,
    { maxProperties: MAX_SERVICES },
    { type: "an object of containers", maxProperties: `at most ${MAX_SERVICES} services` },
  ),
  networkConfig: is.object<NetworkConfig>({
    name: is.required(name),
    internal: is.noted(is.flag, {
      description: "Whether only the task's own containers can be reached. False needs `networkEnabled`.",
    }),
  }),
});

const written = containerWith(writtenTime("How long to wait: a number followed by ms, s, m, h or d, or milliseconds."));
/** A container in a file. */
export const container: Schema<WrittenContainer> = is.reference("container", () => written);
/** What a task has in a file. */
export const writtenFields: Fields<WrittenSetup> = fieldsWith(container);

/** In a program, times are numbers: whatever this schema lets through is a `TaskSetup`. */
const taskSetup = is.object(fieldsWith(containerWith(is.timeout as unknown as Schema<WrittenTime>)));

/** Refuses a task that could not be set up, before anything of it is made. */
export function checkSetup(setup: unknown, where: string, networkEnabled: boolean): asserts setup is TaskSetup {
  check(setup, taskSetup, where);
  checkMeaning(setup as TaskSetup, where, networkEnabled);
}

/** Refuses what is not wrong by itself but does not go together. */
export function checkMeaning(setup: TaskSetup, where: string, networkEnabled: boolean): void {
  checkNames(setup, where);
  if (setup.networkConfig?.internal === false && !networkEnabled) {
    throw new SandboxError(
      "invalid_argument",
      `${where}.networkConfig.internal is false, but the manager has no network`,
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
