import { namedSecret } from "../../sandbox/host.js";
import * as is from "../../util/schema.js";
import { type Fields, type JsonSchema, type Schema, toJsonSchema } from "../../util/schema.js";
import type { NodeSpecBase } from "../node-types.js";
import { KINDS, type NodeKindModule } from "../nodes.js";
import { fields, type Written } from "../schema.js";
import type { BlueprintSpec, HomeFile } from "../types.js";

const { aboveZero, argv, cwd, description, duration, hosts, id, limits, name, positive, secrets, text, variables } =
  fields;

type WrittenNode = Written<NodeSpecBase> & { kind: string };

const common: Fields<Written<NodeSpecBase>> = {
  id,
  name,
  description,
  when: is.noted(text, { description: "Runs only if this is true, for example nodes.test.status == 'failure'." }),
  needs: is.list(id, { description: "Nodes that must have run before." }),
  timeout: duration,
  retry: is.object(
    {
      max: is.scalar("integer", { minimum: 0, maximum: 10 }),
      backoff: duration,
      on: is.list(is.oneOf("rate_limit", "network", "crash", "unavailable")),
    },
    { description: "Tries again after a failure of the infrastructure. A failing command is never tried again." },
  ),
  continueOnError: is.noted(is.flag, { description: "A failure of this node does not end the run." }),
  env: variables,
  cwd,
  secrets,
};

/** The properties of a kind are held to its type where they are written. */
function nodeOf({ name: kind, aliases, properties }: NodeKindModule): Schema<WrittenNode> {
  return is.object<WrittenNode>({ kind: is.required(is.oneOf<string[]>(kind, ...aliases)), ...common, ...properties });
}

const node = is.choice<WrittenNode[]>("kind", "a node", ...KINDS.map(nodeOf));

const homePath = is.string({
  pattern: "^(?![/~])(?!(?:.*/)?\\.{1,2}(?:/|$))(?!.*//)[^\\0\\r\\n]*[^/\\0\\r\\n]$",
  description: "a path below HOME, such as .config/tool.json",
});
const hostPath = is.string({
  pattern: "^~?/[^\\0\\r\\n]+$",
  description: "an absolute path, or one that starts with ~/",
});

/** A blueprint as a document has it. */
interface WrittenBlueprint extends Omit<Written<BlueprintSpec>, "nodes"> {
  $schema?: string;
  nodes: readonly WrittenNode[];
}

/** What a blueprint document looks like. */
export const blueprintSchema: Schema<WrittenBlueprint> = is.object(
  {
    $schema: is.string(),
    version: is.literal(1, "1"),
    name: is.required(name),
    description,
    inputs: is.record(
      is.object({
        type: is.noted(is.oneOf("string", "number", "boolean"), { default: "string" }),
        description: is.string(),
        required: is.noted(is.flag, { default: false }),
        default: is.scalar(["string", "number", "boolean"]),
      }),
      is.string({ pattern: "^[A-Za-z][A-Za-z0-9_-]{0,63}$" }),
      { description: "Values that a run is given: --input name=value, {{ inputs.name }}." },
    ),
    sandbox: is.object({
      image: name,
      workspace: is.oneOf("worktree", "overlay", "copy"),
      network: is.noted(is.oneOf("none", "full"), {
        description: "Beside the hosts in allow and those that agents need.",
      }),
      allow: is.noted(hosts, { description: "Hosts that every node may reach, by name or by a rule about requests." }),
      deny: is.noted(hosts, { description: "What no node may reach, though it is allowed." }),
      env: is.noted(variables, { description: "Variables of every node. No secrets: those are named, never written." }),
      secrets: is.noted(is.record(namedSecret, is.string({ pattern: "^[A-Za-z_][A-Za-z0-9_]*$" })), {
        description: "Variables that nodes can use and never see: a placeholder, replaced on the way to these hosts.",
      }),
      setup: is.list(argv, { description: "Programs to run before the first node, as an installation." }),
      install: is.noted(is.union("false or a program with its arguments", argv, is.literal(false, "false")), {
        description: "Installs dependencies before the first node. Default: found from the lockfile; false: nothing.",
      }),
      copy: is.list(name, { description: "Ignored paths of your working tree to copy in, such as node_modules." }),
      home: is.noted(
        is.record(
          is.union(
            "a text or { file }",
            is.string({ maxLength: 1_000_000 }),
            is.object<HomeFile>({ file: is.required(hostPath) }),
          ),
          homePath,
        ),
        {
          maxProperties: 64,
          description: "Files below HOME: a text, or { file } for a file of your machine, which is copied in.",
        },
      ),
      limits: is.object({ memory: positive, cpus: aboveZero, pids: positive, disk: positive }),
      mounts: is.list(is.object({ source: is.required(name), target: name, writable: is.flag })),
    }),
    limits,
    expectsChanges: is.noted(is.flag, {
      description: "Whether a run that changes nothing ends with no_changes. Default: if there is a commit.",
    }),
    nodes: is.required(
      is.list(
        is.reference("node", () => node),
        { minItems: 1, maxItems: 200 },
      ),
    ),
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: "urn:glovebox:blueprint:1",
    title: "Glovebox blueprint",
  },
);

/** The same as JSON Schema 2020-12, printed by `glovebox blueprint schema`. */
export const BLUEPRINT_SCHEMA: JsonSchema = toJsonSchema(blueprintSchema);
