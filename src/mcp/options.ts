import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../sandbox/types.js";
import type { OpenOptions } from "../sandbox.js";
import { defined } from "../util/defined.js";
import * as is from "../util/schema.js";
import { MAX_ANSWER, MAX_CALLS, MAX_SANDBOXES } from "./limits.js";
import type { RunOffer } from "./runs.js";

/** Tools that are there only if they are asked for. */
export const TOOL_GROUPS = ["browse", "git", "snapshot", "ports", "runs"] as const;

/** The name of a group of tools. */
export type ToolGroup = (typeof TOOL_GROUPS)[number];

/** What a model may choose when it makes a sandbox, beside what the server's sandboxes have. */
export interface SandboxOffers {
  readonly backends?: readonly string[];
  readonly images?: readonly string[];
  readonly repos?: readonly string[];
}

/** Options of `createMcpServer`. */
export interface McpServerOptions {
  /**
   * The sandboxes of the server. Default: an empty one without network, with `/workspace` as its work directory and file tools that reach whatever a
   * command can, where the backend has that.
   */
  sandbox?: OpenOptions;
  /** Opens a sandbox. Default: `openSandbox`. */
  open?(options: OpenOptions): Promise<Sandbox>;
  /** Groups of tools to add to the seven. Default: none. */
  tools?: readonly ToolGroup[];
  /** Several sandboxes per client: adds `sandbox_create`, `sandbox_list` and `sandbox_destroy`, and `sandbox_id` to the others. Default false. */
  multi?: boolean;
  /** With `multi`: what the model may choose. Default: nothing but a name and less network. */
  offers?: SandboxOffers;
  /** Also answer in `structuredContent`. Some clients then show the model nothing else, as JSON. Default false. */
  structured?: boolean;
  /** Leave escape sequences in the output of commands. Default false. */
  ansi?: boolean;
  /** Bytes of text in one answer. Default 30 000. */
  maxOutput?: number;
  /** Calls of one client at the same time. Default 32. */
  maxCalls?: number;
  /** Open sandboxes of one client. Default 8. */
  maxSandboxes?: number;
  /** Lets the tool `push` push; needs the group `git`. The client asks its user each time, if it can. Default: no pushes. */
  push?: { readonly token: string; readonly server?: string };
  /** What the tools of the group `runs` work on and may start; needed by that group, and by no other. */
  runs?: RunOffer;
  /** Called with what goes wrong beside the answers. */
  onError?(error: Error): void;
}

const offers: is.Schema<SandboxOffers> = is.object({
  backends: is.list(is.text),
  images: is.list(is.text),
  repos: is.list(is.text),
});

const runOffer = is.object<Pick<RunOffer, "blueprints" | "maxRuns" | "repo">>({
  blueprints: is.list(is.text, { minItems: 1 }),
  maxRuns: is.whole(1, 1_000),
  repo: is.required(is.text),
});

const schema: is.Schema<McpServerOptions> = is.object({
  sandbox: is.custom((value, name) => {
    if (typeof value !== "object" || value === null) throw is.invalidArgument(name, "an object", value);
  }),
  open: is.callback(),
  tools: is.list(is.oneOf(...TOOL_GROUPS)),
  multi: is.flag,
  offers,
  structured: is.flag,
  ansi: is.flag,
  maxOutput: is.whole(1_000, 1 << 20),
  maxCalls: is.whole(1, 10_000),
  maxSandboxes: is.whole(1, 1_000),
  push: is.object({ token: is.required(is.token), server: is.text }),
  // What else is in it is checked by each run.
  runs: is.custom(checkRuns),
  onError: is.callback(),
});

/** Of the offer only what no run checks. */
function checkRuns(value: unknown, name: string): void {
  if (typeof value !== "object" || value === null) throw is.invalidArgument(name, "an object", value);
  const { blueprints, maxRuns, repo } = value as Partial<RunOffer>;
  is.check(defined({ blueprints, maxRuns, repo }), runOffer, name);
}

/** Options with the usual values filled in. */
export type CheckedOptions = McpServerOptions &
  Required<Pick<McpServerOptions, "maxOutput" | "maxCalls" | "maxSandboxes">> & { readonly sandbox: OpenOptions };

/** Checks options and fills in the usual values. */
export function checkOptions(options: McpServerOptions): CheckedOptions {
  is.check(options, schema, "options");
  const { multi, sandbox = {}, offers: offered } = options;
  const single = (["id", "name"] as const).find((key) => sandbox[key] !== undefined);
  if (multi === true && single !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `Option multi can't be combined with ${single}: several sandboxes can't be the same`,
      {
        hint: `leave ${single} out`,
      },
    );
  }
  if (multi !== true && offered !== undefined) {
    throw new SandboxError("invalid_argument", "Option offers needs multi", {
      hint: "set multi: true, or leave offers out",
    });
  }
  if (options.push !== undefined && options.tools?.includes("git") !== true) {
    throw new SandboxError("invalid_argument", 'Option push needs the tools "git"', { hint: 'add "git" to tools' });
  }
  if ((options.runs !== undefined) !== (options.tools?.includes("runs") === true)) {
    throw new SandboxError("invalid_argument", 'Option runs and the tools "runs" need each other', {
      hint: 'for example tools: ["runs"], runs: { repo: "." }',
    });
  }
  const usual = { maxOutput: MAX_ANSWER, maxCalls: MAX_CALLS, maxSandboxes: MAX_SANDBOXES, sandbox: {} };
  return { ...usual, ...options };
}
