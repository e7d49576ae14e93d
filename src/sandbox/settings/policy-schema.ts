import { posix } from "node:path";
import type { NetworkPolicy } from "../../../contracts/types.js";
import * as is from "../../util/schema.js";
import { invalidArgument, type Schema } from "../../util/schema.js";
import { backendName, mostNetwork, schemaLine } from "./fields.js";
import { lifetime, size, toBytes, toMilliseconds } from "./quantity.js";

/** An upper bound, and what a sandbox gets that asks for nothing: the bound itself unless `default` is given. */
export interface Bound<T> {
  max: T;
  default?: T;
}

/** A policy file, as it is written. Each rule that it has restricts every sandbox. */
export interface PolicyFile {
  $schema?: string;
  backends?: readonly string[];
  images?: readonly string[];
  network?: NetworkPolicy;
  isolation?: "required";
  mounts?: "none" | { under: readonly string[]; readOnly?: boolean };
  limits?: {
    memory?: number | string | Bound<number | string>;
    cpus?: number | Bound<number>;
    pids?: number | Bound<number>;
    disk?: number | string | Bound<number | string>;
  };
  ttl?: number | string | Bound<number | string>;
}

const imagePattern = is.and(is.text, (value, name) => {
  const example = value.replaceAll("*", "a").replace(/@sha256:a$/, `@sha256:${"a".repeat(64)}`);
  if (new RegExp(is.imageName("").pattern ?? "").test(example)) return;
  throw invalidArgument(
    name,
    "a pattern that the name of an image can match, such as node:* or registry.example/team/*",
    value,
  );
});

const prefix = is.and(is.path, (value, name) => {
  if (posix.isAbsolute(value) && !value.split("/").includes("..")) return;
  throw invalidArgument(name, 'an absolute path without ".."', value);
});

function bound<T extends number | string>(value: Schema<T>, toNumber: (value: T) => number): Schema<T | Bound<T>> {
  const both = is.and(
    is.object<Bound<T>>({ max: is.required(value), default: value } as unknown as is.Fields<Bound<T>>),
    ({ max, default: usual = max }, name) => {
      if (toNumber(usual) > toNumber(max))
        throw invalidArgument(`${name}.default`, `at most ${max}, the maximum`, usual);
    },
  );
  return is.custom<T | Bound<T>>(
    (given, name) => {
      if (typeof given === "object") is.check(given, both, name);
      else is.check(given, value, name);
    },
    { oneOf: [value, both] },
  );
}

const number = (value: number): number => value;

/** What a policy file looks like. */
export const POLICY_SCHEMA: Schema<PolicyFile> = is.object(
  {
    $schema: schemaLine,
    backends: is.noted(is.list(backendName, { minItems: 1 }, { minItems: "at least one backend" }), {
      description: "Only these backends.",
    }),
    images: is.noted(is.list(imagePattern, { minItems: 1 }, { minItems: "at least one pattern" }), {
      description:
        "Only images whose name matches one of these patterns: * stands for anything but a slash, ** for anything.",
    }),
    network: is.noted(mostNetwork, { description: "The most that a sandbox can reach." }),
    isolation: is.noted(is.oneOf("required"), {
      description: "Forbids isolation: none, and the options of a backend that weaken its isolation.",
    }),
    mounts: is.noted(
      is.union(
        "none, or a mapping with a list named under",
        is.oneOf("none"),
        is.object<{ under: readonly string[]; readOnly?: boolean }>(
          {
            under: is.required(is.list(prefix, { minItems: 1 }, { minItems: "at least one directory" })),
            readOnly: is.flag,
          },
          {},
          { incomplete: "a list named under" },
        ),
      ),
      { description: "No directories of this machine in a sandbox, or only those below some directories." },
    ),
    limits: is.object({
      memory: bound(size, toBytes),
      cpus: bound(is.cores, number),
      pids: bound(is.positive, number),
      disk: bound(size, toBytes),
    }),
    ttl: is.noted(bound(lifetime, toMilliseconds), { description: "The longest that a sandbox lives." }),
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Glovebox policy file",
    description: "Restrictions of every sandbox on a machine. Each rule can only tighten.",
  },
);
