import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy } from "../../../contracts/types.js";
import { entryText } from "../../sandbox/host.js";
import type { Sandbox } from "../../sandbox/types.js";
import type { OpenOptions } from "../../sandbox.js";
import * as is from "../../util/schema.js";
import type { CheckedOptions } from "../options.js";
import { CHANGES, defineTool, READS, type Tool } from "../tool.js";
import type { ToolParts } from "../tool-parts.js";

interface CreateInput {
  backend?: string;
  image?: string;
  network?: readonly string[];
  repo?: string;
  name?: string;
}

const SANDBOX_FIELDS: is.JsonSchema = {
  type: "object",
  properties: {
    sandbox_id: { type: "string" },
    name: { type: "string" },
    backend: { type: "string" },
    work_dir: { type: "string" },
    created_at: { type: "string" },
  },
};

/** The tools for several sandboxes. The user's options bound what a model can make. */
export function sandboxTools({ options, sandboxes }: ToolParts): Tool[] {
  return [
    defineTool<CreateInput>({
      name: "sandbox_create",
      title: "Make a sandbox",
      description: createText(options),
      input: createInput(options),
      output: { ...SANDBOX_FIELDS, required: ["sandbox_id", "work_dir"] },
      isText: false,
      hints: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
      usesSandbox: false,
      async run(given, { owner }) {
        const wanted = narrowed(given, options);
        sandboxes.assertRoom(owner);
        const sandbox = await sandboxes.create(owner, wanted);
        const { isolation, killTree } = sandbox.capabilities;
        return {
          text: `sandbox_id ${sandbox.id}\nwork directory ${sandbox.workDir}\nbackend ${sandbox.backend}, isolation ${isolation}, kills ${killTree}`,
          fields: fieldsOf(sandbox),
        };
      },
    }),
    defineTool<object>({
      name: "sandbox_list",
      title: "List sandboxes",
      description: "List the sandboxes that you made.",
      input: is.object<object>({}),
      output: {
        type: "object",
        properties: { sandboxes: { type: "array", items: SANDBOX_FIELDS } },
        required: ["sandboxes"],
      },
      isText: false,
      hints: READS,
      usesSandbox: false,
      async run(_, { owner }) {
        const all = sandboxes.list(owner).map(fieldsOf);
        return {
          text:
            all.map((each) => `${each["sandbox_id"]}  ${each["name"] ?? "-"}  ${each["work_dir"]}`).join("\n") ||
            "there is none",
          fields: { sandboxes: all },
        };
      },
    }),
    defineTool<{ sandbox_id: string }>({
      name: "sandbox_destroy",
      title: "Remove a sandbox",
      description: "Close a sandbox. Its processes end, and its files are removed unless the user keeps them.",
      input: is.object<{ sandbox_id: string }>({ sandbox_id: is.required(is.text) }),
      output: { type: "object", properties: { sandbox_id: { type: "string" } }, required: ["sandbox_id"] },
      isText: false,
      hints: { ...CHANGES, idempotent: true },
      usesSandbox: false,
      async run({ sandbox_id: id }, { owner }) {
        await sandboxes.destroy(owner, id);
        return { text: `closed ${id}`, fields: { sandbox_id: id } };
      },
    }),
  ];
}

/** What clients get to know about a sandbox. */
export function fieldsOf({ id, name, backend, workDir, createdAt }: Sandbox): Record<string, unknown> {
  return { sandbox_id: id, ...(name !== undefined && { name }), backend, work_dir: workDir, created_at: createdAt };
}

function createText({ offers = {}, maxSandboxes }: CheckedOptions): string {
  const choices = [
    ...(offers.backends === undefined ? [] : [`backend: ${offers.backends.join(", ")}`]),
    ...(offers.images === undefined ? [] : [`image: ${offers.images.join(", ")}`]),
    ...(offers.repos === undefined ? [] : [`repo: ${offers.repos.join(", ")}`]),
  ];
  return (
    `Make a sandbox, at most ${maxSandboxes}. Its sandbox_id is what the other tools need. It lives until sandbox_destroy, or until this server ends; ` +
    `the user may have it closed sooner when it is not used.${choices.length === 0 ? "" : ` The user offers ${choices.join("; ")}.`}`
  );
}

function createInput({ offers = {} }: CheckedOptions): is.Schema<CreateInput> {
  const choice = (words: readonly string[] = []): is.Schema<string> =>
    is.noted(is.text, { description: words.length === 0 ? "Not offered here." : `One of ${words.join(", ")}.` });
  return is.object<CreateInput>({
    backend: choice(offers.backends),
    image: choice(offers.images),
    network: is.noted(is.list(is.text), {
      description: "Only these of the hosts that the user allows; an empty list is none.",
    }),
    repo: choice(offers.repos),
    name: is.noted(is.text, { description: "A name for the user." }),
  });
}

/** The options of a sandbox as a model wants it: a choice among what the user offers, and less network, never more. */
function narrowed({ backend, image, network, repo, name }: CreateInput, options: CheckedOptions): Partial<OpenOptions> {
  const { offers = {}, sandbox } = options;
  const choose = (what: string, value: string | undefined, offered: readonly string[] = [], usual: unknown): void => {
    if (value === undefined || value === usual || offered.includes(value)) return;
    throw new SandboxError("permission_denied", `The user does not offer the ${what} "${value}"`, {
      hint: offered.length === 0 ? `leave ${what} out` : `choose one of ${offered.join(", ")}`,
    });
  };
  choose("backend", backend, offers.backends, sandbox.backend);
  choose("image", image, offers.images, sandbox.image);
  choose("repo", repo, offers.repos, sandbox.repo);
  return {
    ...(backend !== undefined && { backend }),
    ...(image !== undefined && { image }),
    ...(repo !== undefined && { repo }),
    // A model must not open again what the user kept.
    ...(name !== undefined && { name, ifExists: "fail" as const }),
    ...(network !== undefined && { network: lessNetwork(network, sandbox.network) }),
  };
}

/** A host of the internet; nothing of this machine or its network, which an open network may not reach either. */
const PUBLIC_NAME = /^(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$/i;

function lessNetwork(hosts: readonly string[], allowed: NetworkPolicy | undefined): NetworkPolicy {
  if (hosts.length === 0) return "none";
  if (allowed === "full" && hosts.every((host) => PUBLIC_NAME.test(host))) return { allow: [...hosts] };
  const entries = typeof allowed === "object" ? allowed.allow : [];
  const chosen = hosts.map((host) => {
    const found = entries.find((entry) => entryText(entry) === host || entry === host);
    if (found !== undefined) return found;
    throw new SandboxError("permission_denied", `The user does not allow the host "${host}"`, {
      hint:
        entries.length === 0
          ? "no host is allowed here"
          : `allowed: ${entries.map((entry) => entryText(entry)).join(", ")}`,
    });
  });
  return { ...(typeof allowed === "object" && allowed), allow: chosen };
}
