import { KINDS, type NodeKindModule } from "../nodes.js";
import { fields, type Schema } from "../schema.js";

const { argv, cwd, duration, id, limits, name, secrets, text, variables } = fields;
const common: Readonly<Record<string, Schema>> = {
  id,
  name,
  description: { type: "string", maxLength: 10_000 },
  when: { ...text, description: "Runs only if this is true, for example nodes.test.status == 'failure'." },
  needs: { type: "array", items: id, description: "Nodes that must have run before." },
  timeout: duration,
  retry: {
    type: "object",
    additionalProperties: false,
    description: "Tries again after a failure of the infrastructure. A failing command is never tried again.",
    properties: {
      max: { type: "integer", minimum: 0, maximum: 10 },
      backoff: duration,
      on: { type: "array", items: { enum: ["rate_limit", "network", "crash", "unavailable"] } },
    },
  },
  continueOnError: { type: "boolean", description: "A failure of this node does not end the run." },
  env: variables,
  cwd,
  secrets,
};

function schemaOf({ name, aliases, properties, required }: NodeKindModule): Schema {
  return {
    type: "object",
    additionalProperties: false,
    required: ["kind", ...required],
    properties: { kind: { enum: [name, ...aliases] }, ...common, ...properties },
  };
}

/** What a blueprint document looks like: JSON Schema 2020-12, printed by `glovebox blueprint schema`. */
export const BLUEPRINT_SCHEMA: Schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $id: "urn:glovebox:blueprint:1",
  title: "Glovebox blueprint",
  type: "object",
  additionalProperties: false,
  required: ["name", "nodes"],
  properties: {
    $schema: { type: "string" },
    version: { const: 1 },
    name,
    description: { type: "string", maxLength: 10_000 },
    inputs: {
      type: "object",
      description: "Values that a run is given: --input name=value, {{ inputs.name }}.",
      propertyNames: { pattern: "^[A-Za-z][A-Za-z0-9_-]{0,63}$" },
      additionalProperties: {
        type: "object",
        additionalProperties: false,
        properties: {
          type: { enum: ["string", "number", "boolean"], default: "string" },
          description: { type: "string" },
          required: { type: "boolean", default: false },
          default: { type: ["string", "number", "boolean"] },
        },
      },
    },
    sandbox: {
      type: "object",
      additionalProperties: false,
      properties: {
        image: name,
        workspace: { enum: ["worktree", "overlay", "copy"] },
        network: { enum: ["none", "full"], description: "Beside the hosts in allow and those that agents need." },
        allow: { type: "array", items: name, description: "Hosts that every node may reach." },
        env: { ...variables, description: "Variables of every node. No secrets: those are named, never written." },
        setup: {
          type: "array",
          items: argv,
          description: "Programs to run before the first node, as an installation.",
        },
        limits: {
          type: "object",
          additionalProperties: false,
          properties: {
            memory: { type: "integer", minimum: 1 },
            cpus: { type: "number", exclusiveMinimum: 0 },
            pids: { type: "integer", minimum: 1 },
            disk: { type: "integer", minimum: 1 },
          },
        },
        mounts: {
          type: "array",
          items: {
            type: "object",
            additionalProperties: false,
            required: ["source"],
            properties: { source: name, target: name, writable: { type: "boolean" } },
          },
        },
      },
    },
    limits,
    expectsChanges: {
      type: "boolean",
      description: "Whether a run that changes nothing ends with no_changes. Default: if there is a commit.",
    },
    nodes: { type: "array", minItems: 1, maxItems: 200, items: { $ref: "#/$defs/node" } },
  },
  $defs: {
    node: { discriminator: { propertyName: "kind" }, oneOf: KINDS.map(schemaOf) },
  },
};
