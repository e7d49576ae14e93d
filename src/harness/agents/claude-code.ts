import { defined } from "../../util/defined.js";
import type {
  AgentDriver,
  AgentFailure,
  AgentReader,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
  SessionTotals,
  TokenUsage,
} from "../types.js";
import { bedrockAccess, GOOGLE_TOKEN, isOn, vertexAccess } from "./clouds.js";
import { failureOf } from "./failure-of.js";
import { asCount, asRecord, asRecords, asText, asWhole, parseLine, summarize, type Untrusted } from "./json-line.js";
import { toMcpServers } from "./mcp-servers.js";
import { withoutResult } from "./no-result.js";
import { added, beyond, noTokens } from "./token-usage.js";

const API = { host: "api.anthropic.com", baseUrl: "ANTHROPIC_BASE_URL" };

/** Claude Code, by `claude -p` with its stream of JSON. */
export const claudeCode: AgentDriver = {
  name: "claude-code",
  reportsCost: true,
  network: ["api.anthropic.com"],
  secrets: [["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"]],
  keys: {
    ANTHROPIC_API_KEY: { ...API, header: "x-api-key", prefix: "sk-ant-" },
    ANTHROPIC_AUTH_TOKEN: { ...API, header: "authorization" },
    CLAUDE_CODE_OAUTH_TOKEN: { ...API, header: "authorization", prefix: "sk-ant-oat01-" },
  },
  logins: { ".claude/.credentials.json": ["platform.claude.com", "console.anthropic.com"] },
  providers: [
    {
      name: "Bedrock",
      by: "the variable CLAUDE_CODE_USE_BEDROCK",
      isChosen: ({ env }) => isOn(env["CLAUDE_CODE_USE_BEDROCK"]),
      access: ({ env }) => bedrockAccess(env, { baseUrl: "ANTHROPIC_BEDROCK_BASE_URL" }),
    },
    {
      name: "Vertex AI",
      by: "the variable CLAUDE_CODE_USE_VERTEX",
      isChosen: ({ env }) => isOn(env["CLAUDE_CODE_USE_VERTEX"]),
      access: ({ env }) =>
        vertexAccess(env["CLOUD_ML_REGION"] ?? "us-east5", {
          secrets: [GOOGLE_TOKEN],
          baseUrl: "ANTHROPIC_VERTEX_BASE_URL",
        }),
    },
  ],
  startsMcp: true,
  versionArgv: ["claude", "--version"],
  minVersion: "2.1.112",
  tried: ["2.1.327", "2.1.328"],
  sessionFolders: [".claude/projects"],
  installHint: "npm install -g @anthropic-ai/claude-code",
  command: (request) => ({
    argv: [...startOf(request), ...flags(request)],
    env: {
      // Without it the CLI refuses to skip its questions as root; the sandbox around it is ours.
      IS_SANDBOX: "1",
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
    stdin: request.prompt,
  }),
  reader: (before) => new ClaudeReader(before),
};

/** It takes no access token of Google's from a variable, so that goes by a header of ours, and it must not look for a login itself. */
const WITH_TOKEN = `[ -z "$${GOOGLE_TOKEN}" ] || export CLAUDE_CODE_SKIP_VERTEX_AUTH=1 ANTHROPIC_CUSTOM_HEADERS="\${ANTHROPIC_CUSTOM_HEADERS:+$ANTHROPIC_CUSTOM_HEADERS
}Authorization: Bearer $${GOOGLE_TOKEN}"
exec claude "$@"`;

function startOf({ env = {} }: AgentRequest): string[] {
  return isOn(env["CLAUDE_CODE_USE_VERTEX"]) ? ["/bin/sh", "-c", WITH_TOKEN, "claude"] : ["claude"];
}

/** It refuses a budget of nothing, which is what less than this is written as. */
const LEAST_BUDGET = 0.0001;

function flags(request: AgentRequest): string[] {
  const { model, systemPrompt, tools, sessionId, maxCostUsd, maxTurns, args = [] } = request;
  const mcpServers = toMcpServers(request);
  return [
    "-p",
    // Like the list of tools, it takes everything up to the next flag.
    ...(mcpServers === undefined ? [] : ["--mcp-config", JSON.stringify({ mcpServers })]),
    ...["--output-format", "stream-json", "--verbose", "--strict-mcp-config"],
    ...["--settings", '{"sandbox":{"enabled":false}}'],
    ...(model === undefined ? [] : ["--model", model]),
    ...(systemPrompt === undefined ? [] : ["--append-system-prompt", systemPrompt]),
    ...(sessionId === undefined ? [] : ["--resume", sessionId]),
    ...(maxCostUsd === undefined ? [] : ["--max-budget-usd", Math.max(maxCostUsd, LEAST_BUDGET).toFixed(4)]),
    ...(maxTurns === undefined ? [] : ["--max-turns", String(maxTurns)]),
    ...args,
    // The list takes everything up to the next flag, so it comes last and the prompt by stdin.
    ...(tools === undefined ? ["--dangerously-skip-permissions"] : ["--allowedTools", ...tools]),
  ];
}

/** Messages that are remembered to be counted once. */
const MOST_MESSAGES = 10_000;

/**
 * A run has one result, or several: it works on when its subagents and commands in the background end. Each piece of work starts with
 * an `init`, and one may start before the result of the last is printed.
 */
class ClaudeReader implements AgentReader {
  #said = "";
  #session: string | undefined;
  #failure: AgentFailure | undefined;
  #verdict: AgentVerdict | undefined;
  #turns: number | undefined;
  /** Pieces of work that have no result yet. */
  #open = 0;
  #used: TokenUsage = noTokens();
  /** What the results have reported so far, where each reports what is new. */
  #reported: { usage: TokenUsage; costUsd: number } = { usage: noTokens(), costUsd: 0 };
  readonly #messages = new Set<string>();
  readonly #before: SessionTotals | undefined;

  constructor(before: SessionTotals | undefined) {
    this.#before = before;
  }

  line(text: string): AgentSignal[] {
    const event = parseLine(text);
    switch (event?.["type"]) {
      case "system":
        return event["subtype"] === "init" ? this.#begin(event) : [];
      case "assistant":
        return this.#speak(event);
      case "user":
        return contentOf(event).flatMap(toToolResult);
      case "result":
        return this.#end(event);
      default:
        return [];
    }
  }

  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    return withoutResult(exit, { said: this.#said });
  }

  #begin(event: Untrusted): AgentSignal[] {
    this.#open += 1;
    return [...this.#start(event), { type: "alive" }];
  }

  #start(event: Untrusted): AgentSignal[] {
    const sessionId = asText(event["session_id"]);
    const model = asText(event["model"]);
    if (sessionId === undefined || sessionId === this.#session) return [];
    this.#session = sessionId;
    return [{ type: "session", sessionId, ...(model !== undefined && { model }) }];
  }

  #speak(event: Untrusted): AgentSignal[] {
    const isError = asText(event["error"]) !== undefined;
    const isOfSubagent = asText(event["parent_tool_use_id"]) !== undefined;
    if (isError && !isOfSubagent) this.#failure = failureIn(event, "error");
    const signals = contentOf(event).flatMap((block): AgentSignal[] => {
      const text = asText(block["text"]);
      if (block["type"] === "text" && text !== undefined) {
        if (!isError && !isOfSubagent) this.#said = text;
        return [{ type: "message", text }];
      }
      const tool = asText(block["name"]);
      if (block["type"] !== "tool_use" || tool === undefined) return [];
      return [{ type: "tool_call", tool, summary: summarize(block["input"]) }];
    });
    const message = asRecord(event["message"]);
    if (!this.#isNew(asText(message?.["id"]))) return signals;
    // Its own limit of turns, and its count of them, leave those of subagents out.
    const turn: AgentSignal = { type: isOfSubagent ? "alive" : "turn" };
    return [turn, ...this.#count(asRecord(message?.["usage"])), ...signals];
  }

  /** One message may come in several events, with those of subagents in between. */
  #isNew(id: string | undefined): boolean {
    if (id === undefined) return true;
    if (this.#messages.has(id)) return false;
    if (this.#messages.size >= MOST_MESSAGES) this.#messages.clear();
    this.#messages.add(id);
    return true;
  }

  /** What the messages say they used; the result has the last word. */
  #count(usage: Untrusted | undefined): AgentSignal[] {
    if (usage === undefined) return [];
    this.#used = added(this.#used, toUsage(usage));
    return [{ type: "usage", usage: this.#used }];
  }

  #end(event: Untrusted): AgentSignal[] {
    const signals: AgentSignal[] = this.#start(event);
    const usage = asRecord(event["usage"]);
    if (usage !== undefined) {
      const total = this.#total(event, toUsage(usage));
      this.#used = total.usage;
      signals.push({ type: "usage", ...total });
    }
    signals.push({ type: "result", result: this.#judge(event) });
    this.#open = Math.max(0, this.#open - 1);
    return this.#open > 0 ? [...signals, { type: "alive" }] : signals;
  }

  /** The last result counts, but for one of work that turned out to be none. */
  #judge(event: Untrusted): AgentVerdict {
    const verdict = toVerdict(event, this.#failure);
    this.#failure = undefined;
    const isNothing = !verdict.isError && verdict.turns === 0 && asText(event["result"]) === undefined;
    if (verdict.turns !== undefined) this.#turns = (this.#turns ?? 0) + verdict.turns;
    const counted = isNothing && this.#verdict !== undefined ? this.#verdict : verdict;
    this.#verdict = { ...counted, ...defined({ turns: this.#turns }) };
    return this.#verdict;
  }

  /**
   * The models' tokens are those of subagents, too. A newer version says with each result what is new. Of the others, some count the
   * whole session: those whose models have used at least what they had before and what this run used.
   */
  #total(
    event: Untrusted,
    usage: TokenUsage,
  ): Omit<Extract<AgentSignal, { type: "usage" }>, "type"> & { usage: TokenUsage } {
    const total = asCount(event["total_cost_usd"]);
    const own = asRecord(event["model_usage_since_last_result"]);
    const models = asRecord(event["modelUsage"]);
    if (models === undefined) return { usage, ...defined({ costUsd: total }) };
    const session = { usage: tokensOf(models), ...defined({ costUsd: total }) };
    if (own !== undefined) {
      const { usage: tokens, costUsd } = this.#reported;
      this.#reported = { usage: added(tokens, tokensOf(own)), costUsd: costUsd + costOf(own) };
      return { ...this.#reported, session };
    }
    if (Object.keys(models).length === 0) return { usage, ...defined({ costUsd: total }), session };
    const { usage: used, costUsd = 0 } = this.#before ?? { usage: noTokens() };
    const isOfSession = total !== undefined && beyond(session.usage, added(used, usage)) !== undefined;
    const mine = isOfSession ? beyond(session.usage, used) : undefined;
    return { usage: mine ?? session.usage, ...defined({ costUsd: isOfSession ? total - costUsd : total }), session };
  }
}

/** `is_error` decides: a run without a login says `success` in its subtype and exits with 1. */
function toVerdict(event: Untrusted, failure: AgentFailure | undefined): AgentVerdict {
  const subtype = asText(event["subtype"]) ?? "";
  const limit = subtype === "error_max_turns" ? "turns" : subtype === "error_max_budget_usd" ? "cost" : undefined;
  const isError = event["is_error"] === true || subtype.startsWith("error");
  const errors = Array.isArray(event["errors"]) ? event["errors"].filter((item) => typeof item === "string") : [];
  const text = asText(event["result"]) ?? (errors.join("\n") || subtype);
  const terminalReason = asText(event["terminal_reason"]) ?? (isError ? subtype : undefined);
  const turns = asWhole(event["num_turns"]);
  const own = failureIn(event, "api_error_type");
  return {
    isError,
    text,
    ...(isError &&
      limit === undefined && { failure: failure !== undefined && failure !== "agent_error" ? failure : own }),
    ...defined({ limit, terminalReason, turns }),
  };
}

/** The status of the service's answer, and the program's own word for it. */
function failureIn(event: Untrusted, field: "error" | "api_error_type"): AgentFailure {
  return failureOf({ status: asCount(event["api_error_status"]), kind: asText(event[field]) });
}

function tokensOf(models: Untrusted): TokenUsage {
  return asRecords(Object.values(models)).reduce<TokenUsage>(
    (sum, model) =>
      added(sum, {
        input: asCount(model["inputTokens"]) ?? 0,
        output: asCount(model["outputTokens"]) ?? 0,
        cacheRead: asCount(model["cacheReadInputTokens"]) ?? 0,
        cacheWrite: asCount(model["cacheCreationInputTokens"]) ?? 0,
      }),
    noTokens(),
  );
}

function costOf(models: Untrusted): number {
  return asRecords(Object.values(models)).reduce((sum, model) => sum + (asCount(model["costUSD"]) ?? 0), 0);
}

function contentOf(event: Untrusted): Untrusted[] {
  return asRecords(asRecord(event["message"])?.["content"]);
}

function toToolResult(block: Untrusted): AgentSignal[] {
  return block["type"] === "tool_result" ? [{ type: "tool_result", isError: block["is_error"] === true }] : [];
}

function toUsage(usage: Untrusted): TokenUsage {
  return {
    input: asCount(usage["input_tokens"]) ?? 0,
    output: asCount(usage["output_tokens"]) ?? 0,
    cacheRead: asCount(usage["cache_read_input_tokens"]) ?? 0,
    cacheWrite: asCount(usage["cache_creation_input_tokens"]) ?? 0,
  };
}
