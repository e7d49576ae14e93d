import { isIPv4 } from "node:net";
import { Refusal } from "./reply.js";

/** Says what is wrong with a value; undefined when nothing is. */
type Rule = (value: unknown) => string | undefined;

const text: Rule = (value) => (typeof value === "string" && value !== "" ? undefined : "must be a non-empty string");
const flag: Rule = (value) => (typeof value === "boolean" ? undefined : "must be a boolean value");
const list: Rule = (value) => (Array.isArray(value) ? undefined : "must be an array");
const record: Rule = (value) =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? undefined : "must be an object";
const texts: Rule = (value) =>
  record(value) ??
  (Object.values(value as object).every((each) => typeof each === "string") ? undefined : "must have strings only");
const whole =
  (least: number): Rule =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least ? undefined : `must be an integer not less than ${least}`;
const blocks: Rule = (value) =>
  eachOf(value, (entry) => {
    const [address = "", bits = ""] = entry.split("/");
    return isIPv4(address) && /^\d{1,2}$/.test(bits) && Number(bits) <= 32;
  });
const domains: Rule = (value) =>
  eachOf(value, (entry) => /^(\*\.)?([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}$/i.test(entry));

function eachOf(value: unknown, isRight: (entry: string) => boolean): string | undefined {
  if (typeof value !== "string") return "must be a string";
  const wrong = value === "" ? undefined : value.split(",").find((entry) => !isRight(entry));
  return wrong === undefined ? undefined : `has the invalid entry "${wrong}"`;
}

const NETWORK: Readonly<Record<string, Rule>> = {
  networkBlockAll: flag,
  networkAllowList: blocks,
  domainAllowList: domains,
};
const SIZE: Readonly<Record<string, Rule>> = { cpu: whole(1), memory: whole(1), disk: whole(1) };

type Kind = "create" | "network" | "resize" | "labels" | "snapshot" | "build";

/** What each body of the API may have, as the client that is generated from its description says it. */
const BODIES: Readonly<Record<Kind, Readonly<Record<string, Rule>>>> = {
  create: {
    ...{ name: text, snapshot: text, user: text, env: texts, labels: texts, public: flag, target: text },
    ...{
      ...NETWORK,
      ...SIZE,
      gpu: whole(0),
      gpuType: list,
      spot: flag,
      volumes: list,
      buildInfo: record,
      secrets: list,
    },
    ...{ autoStopInterval: whole(0), autoPauseInterval: whole(0), autoArchiveInterval: whole(0) },
    ...{ autoDeleteInterval: whole(-1), ttlMinutes: whole(0), linkedSandbox: text, kvm: flag },
    ...{ outboundProxyUrl: text, otelEndpointOverride: text },
  },
  network: NETWORK,
  resize: SIZE,
  labels: { labels: texts },
  snapshot: { name: text, includeMemory: flag },
  build: {
    ...{ name: text, imageName: text, entrypoint: list, buildInfo: record, regionId: text, sandboxClass: text },
    ...{ ...SIZE, gpu: whole(0), gpuType: list },
  },
};

/** Refuses a body with a field that the API does not have, or that has a value of another kind, or lacks one that it needs. */
export function checkBody(kind: Kind, body: Record<string, unknown>, ...needed: string[]): void {
  const rules = BODIES[kind];
  for (const name of needed) if (body[name] === undefined) throw new Refusal(400, `${name} should not be empty`);
  for (const [name, value] of Object.entries(body)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) throw new Refusal(400, `property ${name} should not exist`);
    const wrong = value === undefined ? undefined : rule(value);
    if (wrong !== undefined) throw new Refusal(400, `${name} ${wrong}`);
  }
}

/** A number in a path. */
export function wholeOf(argument: string | undefined, name: string, least: number): number {
  const value = Number(argument);
  const wrong = argument === "" ? "must be an integer" : whole(least)(value);
  if (wrong !== undefined) throw new Refusal(400, `${name} ${wrong}`);
  return value;
}
