import type { Schema } from "../schema.js";

const text: Schema = { type: "string", minLength: 1, maxLength: 1_000_000 };
const name: Schema = { type: "string", minLength: 1, maxLength: 200 };
const texts: Schema = { type: "array", items: { type: "string", maxLength: 100_000 }, maxItems: 1_000 };
const argv: Schema = {
  type: "array",
  items: { type: "string", maxLength: 100_000 },
  minItems: 1,
  maxItems: 1_000,
  description: "Program and arguments. No shell sees them; templates become part of one argument.",
};
const script: Schema = { ...text, description: "A script for /bin/sh. It takes no templates: put values into env." };
const duration: Schema = {
  type: ["string", "integer"],
  pattern: "^\\d+(\\.\\d+)?(ms|s|m|h)$",
  minimum: 1,
  description: "A number with ms, s, m or h behind it, or milliseconds.",
};
const id: Schema = {
  type: "string",
  pattern: "^[A-Za-z][A-Za-z0-9_-]{0,63}$",
  description: "Letters, digits, - and _; begins with a letter.",
};
const variables: Schema = {
  type: "object",
  propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
  additionalProperties: { type: "string", maxLength: 100_000 },
};
const secrets: Schema = {
  type: "array",
  items: { type: "string", pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
  maxItems: 64,
  description: "Names of variables whose values come from outside. Values never stand in a blueprint.",
};
const limits: Schema = {
  type: "object",
  additionalProperties: false,
  properties: {
    wall: { ...duration, description: "How long it may take. Of a run: 60m unless said otherwise." },
    costUsd: { type: "number", exclusiveMinimum: 0, description: "What the agents may cost, in dollars." },
    turns: { type: "integer", minimum: 1, description: "How many turns the agents may take." },
    idle: { ...duration, description: "How long an agent may be silent. 10m unless said otherwise." },
  },
};

const common: Readonly<Record<string, Schema>> = {
  id,
  name,
  description: { type: "string", maxLength: 10_000 },
  when: { ...text, description: "Runs only if this holds, for example nodes.test.status == 'failure'." },
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
  cwd: { type: "string", minLength: 1 },
  secrets,
};

const agentTask: Readonly<Record<string, Schema>> = {
  agent: { ...name, description: "claude-code, codex, pi, or command for a program of your own." },
  command: { ...argv, description: "The program of agent: command. It reads the prompt from stdin." },
  output: { enum: ["text", "events"], description: "How the output of agent: command is read." },
  prompt: text,
  systemPrompt: text,
  model: name,
  tools: { ...texts, description: "What the agent may use, in the words of its own CLI." },
  allowedTools: texts,
  continue: { ...id, description: "Go on with the session of this node." },
  network: {
    type: "object",
    additionalProperties: false,
    properties: { allow: { type: "array", items: name, description: "Hosts beside those that the agent needs." } },
  },
  limits,
};

const check: Schema = {
  type: "object",
  additionalProperties: false,
  properties: { id, name, run: argv, shell: script, timeout: duration, env: variables, cwd: common["cwd"] ?? {} },
};
const repair: Schema = {
  type: "object",
  additionalProperties: false,
  properties: {
    ...agentTask,
    env: variables,
    secrets,
    max: { type: "integer", minimum: 0, maximum: 10, default: 2, description: "How many times it may try." },
    stopIfNoChange: { type: "boolean", default: true },
  },
};

function node(
  kinds: readonly string[],
  properties: Readonly<Record<string, Schema>>,
  required: readonly string[],
): Schema {
  return {
    type: "object",
    additionalProperties: false,
    required: ["kind", ...required],
    properties: { kind: { enum: kinds }, ...common, ...properties },
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
      description: "Whether a run that changes nothing is told apart from success. Default: if there is a commit.",
    },
    nodes: { type: "array", minItems: 1, maxItems: 200, items: { $ref: "#/$defs/node" } },
  },
  $defs: {
    node: {
      discriminator: { propertyName: "kind" },
      oneOf: [
        node(["command", "preflight", "deterministic"], { run: argv, shell: script }, []),
        node(["agent", "agentic"], agentTask, ["prompt"]),
        node(
          ["gate", "validate"],
          {
            checks: { type: "array", items: check, minItems: 1, maxItems: 100 },
            steps: { type: "array", items: check, minItems: 1, maxItems: 100 },
            onFail: repair,
            onFailure: repair,
            maxRetries: { type: "integer", minimum: 0, maximum: 10 },
            protect: { ...texts, description: "Globs of paths that must not be changed." },
          },
          [],
        ),
        node(
          ["commit"],
          {
            message: text,
            author: {
              type: "object",
              additionalProperties: false,
              required: ["name", "email"],
              properties: { name, email: name },
            },
          },
          ["message"],
        ),
      ],
    },
  },
};
