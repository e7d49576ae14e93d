import { defined } from "../../util/defined.js";
import type { AgentDriver, AgentReader, AgentRequest, AgentSignal, AgentVerdict, TokenUsage } from "../types.js";
import { classifyFailure } from "./classify-failure.js";
import { asCount, asRecord, asRecords, asText, parseLine, summarize, type Untrusted } from "./json-line.js";
import { withoutResult } from "./no-result.js";

/** Claude Code, by `claude -p` with its stream of JSON. */
export const claudeCode: AgentDriver = {
  name: "claude-code",
  reportsCost: true,
  network: ["api.anthropic.com"],
  secrets: [["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]],
  versionArgv: ["claude", "--version"],
  minVersion: "2.0.0",
  installHint: "npm install -g @anthropic-ai/claude-code",
  command: (request) => ({
    argv: ["claude", ...flags(request)],
    env: {
      // Without it the CLI refuses to skip its questions as root; the sandbox around it is ours.
      IS_SANDBOX: "1",
      DISABLE_AUTOUPDATER: "1",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    },
    stdin: request.prompt,
  }),
  reader: () => new ClaudeReader(),
};

function flags({ model, systemPrompt, tools, sessionId, maxCostUsd, maxTurns }: AgentRequest): string[] {
  return [
    "-p",
    ...["--output-format", "stream-json", "--verbose", "--strict-mcp-config"],
    ...["--settings", '{"sandbox":{"enabled":false}}'],
    ...(model === undefined ? [] : ["--model", model]),
    ...(systemPrompt === undefined ? [] : ["--append-system-prompt", systemPrompt]),
    ...(sessionId === undefined ? [] : ["--resume", sessionId]),
    ...(maxCostUsd === undefined ? [] : ["--max-budget-usd", maxCostUsd.toFixed(4)]),
    ...(maxTurns === undefined ? [] : ["--max-turns", String(maxTurns)]),
    // The list takes everything up to the next flag, so it comes last and the prompt by stdin.
    ...(tools === undefined ? ["--dangerously-skip-permissions"] : ["--allowedTools", ...tools]),
  ];
}

class ClaudeReader implements AgentReader {
  #said = "";
  #session: string | undefined;
  #message: string | undefined;

  line(text: string): AgentSignal[] {
    const event = parseLine(text);
    switch (event?.["type"]) {
      case "system":
        return event["subtype"] === "init" ? this.#start(event) : [];
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
    return withoutResult(exit, this.#said);
  }

  #start(event: Untrusted): AgentSignal[] {
    const sessionId = asText(event["session_id"]);
    const model = asText(event["model"]);
    if (sessionId === undefined || sessionId === this.#session) return [];
    this.#session = sessionId;
    return [{ type: "session", sessionId, ...(model !== undefined && { model }) }];
  }

  #speak(event: Untrusted): AgentSignal[] {
    const signals = contentOf(event).flatMap((block): AgentSignal[] => {
      const text = asText(block["text"]);
      if (block["type"] === "text" && text !== undefined) {
        this.#said = text;
        return [{ type: "message", text }];
      }
      const tool = asText(block["name"]);
      if (block["type"] !== "tool_use" || tool === undefined) return [];
      return [{ type: "tool_call", tool, summary: summarize(block["input"]) }];
    });
    // One message may come in several events.
    const id = asText(asRecord(event["message"])?.["id"]);
    const isNew = id === undefined || id !== this.#message;
    this.#message = id;
    return isNew ? [{ type: "turn" }, ...signals] : signals;
  }

  #end(event: Untrusted): AgentSignal[] {
    const costUsd = asCount(event["total_cost_usd"]);
    const usage = toUsage(asRecord(event["usage"]));
    const signals: AgentSignal[] = this.#start(event);
    if (usage !== undefined) signals.push({ type: "usage", usage, ...(costUsd !== undefined && { costUsd }) });
    return [...signals, { type: "result", result: toVerdict(event) }];
  }
}

/** `is_error` decides: a run without a login says `success` in its subtype and exits with 1. */
function toVerdict(event: Untrusted): AgentVerdict {
  const subtype = asText(event["subtype"]) ?? "";
  const limit = subtype === "error_max_turns" ? "turns" : /budget/.test(subtype) ? "cost" : undefined;
  const isError = event["is_error"] === true || subtype.startsWith("error");
  const errors = Array.isArray(event["errors"]) ? event["errors"].filter((item) => typeof item === "string") : [];
  const text = asText(event["result"]) ?? (errors.join("\n") || subtype);
  const terminalReason = asText(event["terminal_reason"]) ?? (isError ? subtype : undefined);
  const turns = asCount(event["num_turns"]);
  return {
    isError,
    text,
    ...(isError && limit === undefined && { failure: classifyFailure(text) }),
    ...defined({ limit, terminalReason, turns }),
  };
}

function contentOf(event: Untrusted): Untrusted[] {
  return asRecords(asRecord(event["message"])?.["content"]);
}

function toToolResult(block: Untrusted): AgentSignal[] {
  return block["type"] === "tool_result" ? [{ type: "tool_result", isError: block["is_error"] === true }] : [];
}

function toUsage(usage: Untrusted | undefined): TokenUsage | undefined {
  if (usage === undefined) return undefined;
  return {
    input: asCount(usage["input_tokens"]) ?? 0,
    output: asCount(usage["output_tokens"]) ?? 0,
    cacheRead: asCount(usage["cache_read_input_tokens"]) ?? 0,
    cacheWrite: asCount(usage["cache_creation_input_tokens"]) ?? 0,
  };
}
