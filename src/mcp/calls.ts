import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../sandbox/types.js";
import { check, type JsonSchema, toJsonSchema } from "../util/schema.js";
import { type AnswerStyle, explain, withoutSecrets } from "./answer.js";
import { LONGEST_WAIT, PROGRESS_EVERY } from "./limits.js";
import type { OwnedSandboxes } from "./sandboxes.js";
import type { Tool, ToolAnswer, ToolCall, ToolHints, ToolQuestion } from "./tool.js";

/** The field of an answer's `_meta` that has the answer for programs. */
const RESULT_META = "glovebox/result";

/** A tool as clients see it. */
export interface ListedTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly annotations: Readonly<Record<`${keyof ToolHints}Hint`, boolean>>;
}

/** What a call of a tool needs of its client. */
export interface CallContext {
  readonly owner: string;
  readonly signal: AbortSignal;
  readonly consent: ToolCall["consent"];
  readonly canAsk: boolean;
  /** Tells the client that the call goes on; undefined if it does not want to know. */
  readonly progress: ((count: number, message: string) => void) | undefined;
}

/** The answer to a call, in the words of the protocol. */
export interface CallResult {
  readonly content: readonly ({ type: "text"; text: string } | { type: "image"; data: string; mimeType: string })[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: true;
  readonly _meta: Readonly<Record<string, unknown>>;
}

/** How calls are made. */
export interface CallRules {
  readonly multi: boolean;
  readonly structured: boolean;
  readonly maxCalls: number;
  readonly style: AnswerStyle;
}

const SANDBOX_ID: JsonSchema = {
  type: "string",
  minLength: 1,
  description: "The sandbox, as sandbox_create named it.",
};

/** The tools of a server, and the calls of its clients. */
export class ToolCalls {
  readonly #tools: ReadonlyMap<string, Tool>;
  readonly #sandboxes: OwnedSandboxes;
  readonly #rules: CallRules;
  readonly #running = new Map<string, number>();

  constructor(tools: readonly Tool[], sandboxes: OwnedSandboxes, rules: CallRules) {
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    this.#sandboxes = sandboxes;
    this.#rules = rules;
  }

  /** The tools, always in the same order. */
  list(): ListedTool[] {
    return [...this.#tools.values()].map((tool) => this.#listed(tool));
  }

  /** Whether there is a tool of that name. */
  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /** Calls a tool. What goes wrong is an answer, too. */
  async call(
    name: string,
    given: Readonly<Record<string, unknown>>,
    context: CallContext,
  ): Promise<CallResult | ToolQuestion> {
    const tool = this.#tools.get(name);
    const { owner } = context;
    const running = this.#running.get(owner) ?? 0;
    const used: { sandbox?: Sandbox } = {};
    this.#running.set(owner, running + 1);
    const ticker = new Ticker(context.progress);
    try {
      if (tool === undefined) throw new SandboxError("not_found", `There is no tool "${name}"`);
      if (running >= this.#rules.maxCalls) throw tooMany(this.#rules.maxCalls);
      const { sandbox_id: id, ...rest } = given;
      const own = this.#rules.multi && tool.usesSandbox ? rest : given;
      check(own, tool.input, "options");
      const deadline = performance.now() + LONGEST_WAIT;
      const answer = await tool.run(own, {
        owner,
        signal: context.signal,
        deadline,
        consent: context.consent,
        canAsk: context.canAsk,
        report: (what) => ticker.report(what),
        sandbox: async () => {
          used.sandbox = await this.#sandboxOf(owner, id, { deadline, signal: context.signal });
          return used.sandbox;
        },
      });
      return "question" in answer ? answer : this.#toResult(tool, answer);
    } catch (error) {
      return this.#toFailure(error, used.sandbox);
    } finally {
      ticker.stop();
      const left = (this.#running.get(owner) ?? 1) - 1;
      if (left > 0) this.#running.set(owner, left);
      else this.#running.delete(owner);
    }
  }

  async #sandboxOf(owner: string, id: unknown, limit: { deadline: number; signal: AbortSignal }): Promise<Sandbox> {
    if (!this.#rules.multi) return await inTime(this.#sandboxes.only(owner), limit);
    if (typeof id === "string" && id !== "") return this.#sandboxes.byId(owner, id);
    throw new SandboxError("invalid_argument", "sandbox_id is missing", {
      hint: "sandbox_create makes a sandbox and names it",
    });
  }

  #listed(tool: Tool): ListedTool {
    const { name, title, description, hints, isText, usesSandbox, input, output } = tool;
    const schema = toJsonSchema(input);
    const withId = this.#rules.multi && usesSandbox;
    return {
      name,
      title,
      description,
      inputSchema: withId
        ? {
            ...schema,
            properties: { sandbox_id: SANDBOX_ID, ...schema.properties },
            required: ["sandbox_id", ...(schema.required ?? [])],
          }
        : schema,
      ...((this.#rules.structured || !isText) && { outputSchema: output }),
      annotations: {
        readOnlyHint: hints.readOnly,
        destructiveHint: hints.destructive,
        idempotentHint: hints.idempotent,
        openWorldHint: hints.openWorld,
      },
    };
  }

  #toResult({ isText }: Tool, { text, fields, image }: ToolAnswer): CallResult {
    const hidden = this.#rules.style.hidden;
    const shown = withoutSecrets(fields, hidden) as Record<string, unknown>;
    // An image is there already; twice would be too much.
    const { data, ...meta } = shown;
    return {
      content: [{ type: "text", text }, ...(image === undefined ? [] : [{ type: "image" as const, ...image }])],
      ...((this.#rules.structured || !isText) && { structuredContent: shown }),
      _meta: { [RESULT_META]: image === undefined && data !== undefined ? shown : meta },
    };
  }

  #toFailure(error: unknown, sandbox: Sandbox | undefined): CallResult {
    const { code } = toSandboxError(error);
    let shown = error;
    if (sandbox !== undefined && (code === "closed" || code === "backend_lost")) {
      this.#sandboxes.forget(sandbox);
      void sandbox.teardown();
      shown = new SandboxError(code, toSandboxError(error).message, {
        hint: this.#rules.multi
          ? "sandbox_create makes another"
          : "the next call opens another sandbox; its processes are gone",
      });
    }
    const { text, fields } = explain(shown, this.#rules.style.hidden);
    return { content: [{ type: "text", text }], isError: true, _meta: { [RESULT_META]: fields } };
  }
}

/** Tells a client now and then that its call goes on: at once, then every ten seconds, with a number that rises. */
class Ticker {
  readonly #timer: NodeJS.Timeout | undefined;
  #message = "started";
  #count = 0;

  constructor(progress: CallContext["progress"]) {
    if (progress === undefined) return;
    const tick = (): void => progress(this.#count++, this.#message);
    tick();
    this.#timer = setInterval(tick, PROGRESS_EVERY).unref();
  }

  report(what: string): void {
    if (what !== "") this.#message = what;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

async function inTime<T>(
  work: Promise<T>,
  { deadline, signal }: { deadline: number; signal: AbortSignal },
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    const left = Math.max(0, deadline - performance.now());
    timer = setTimeout(() => reject(stillOpening()), left);
    onAbort = () => reject(new SandboxError("aborted", "The call was cancelled"));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function stillOpening(): SandboxError {
  return new SandboxError("unavailable", "The sandbox is still being opened", { hint: "call again in a few seconds" });
}

function tooMany(most: number): SandboxError {
  return new SandboxError("limit_exceeded", `${most} calls are running, which is the most`, {
    retryable: true,
    hint: "wait for one of them to end",
  });
}
