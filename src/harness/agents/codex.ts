import type { AgentDriver, AgentReader, AgentRequest, AgentSignal, AgentVerdict, TokenUsage } from "../types.js";
import { classifyFailure } from "./classify-failure.js";
import { asCount, asRecord, asText, parseLine, summarize, type Untrusted } from "./json-line.js";
import { withoutResult } from "./no-result.js";

/** Codex, by `codex exec --json`. It does not say what it costs, and has no list of tools. */
export const codex: AgentDriver = {
  name: "codex",
  reportsCost: false,
  cannot: ["tools"],
  network: ["api.openai.com"],
  secrets: [["CODEX_API_KEY", "OPENAI_API_KEY"]],
  versionArgv: ["codex", "--version"],
  minVersion: "0.100.0",
  installHint: "npm install -g @openai/codex",
  command: (request) => ({
    argv: ["codex", "exec", ...(request.sessionId === undefined ? [] : ["resume"]), ...flags(request), "-"],
    stdin: request.systemPrompt === undefined ? request.prompt : `${request.systemPrompt}\n\n${request.prompt}`,
  }),
  reader: () => new CodexReader(),
};

function flags({ model, sessionId }: AgentRequest): string[] {
  return [
    ...(sessionId === undefined ? [] : [sessionId]),
    ...["--json", "--skip-git-repo-check", "--ignore-user-config"],
    // Its own sandbox cannot be set up within ours, which confines it already.
    "--dangerously-bypass-approvals-and-sandbox",
    ...(model === undefined ? [] : ["--model", model]),
  ];
}

const TOOLS: Readonly<Record<string, string>> = {
  command_execution: "shell",
  file_change: "edit",
  mcp_tool_call: "mcp",
  web_search: "web_search",
};

class CodexReader implements AgentReader {
  #said = "";
  #lastError = "";
  readonly #used: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

  line(text: string): AgentSignal[] {
    const event = parseLine(text);
    switch (event?.["type"]) {
      case "thread.started": {
        const sessionId = asText(event["thread_id"]);
        return sessionId === undefined ? [] : [{ type: "session", sessionId }];
      }
      case "turn.started":
        return [{ type: "turn" }];
      case "item.started":
      case "item.completed":
        return this.#item(asRecord(event["item"]) ?? {}, event["type"] === "item.completed");
      case "turn.completed":
        return [
          { type: "usage", usage: this.#add(asRecord(event["usage"]) ?? {}) },
          { type: "result", result: { isError: false, text: this.#said } },
        ];
      case "turn.failed":
        return [{ type: "result", result: failed(asText(asRecord(event["error"])?.["message"]) ?? this.#lastError) }];
      case "error":
        // It comes again and again while there is no connection; so it is no sign of life.
        this.#lastError = asText(event["message"]) ?? "";
        return [];
      default:
        return [];
    }
  }

  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    return withoutResult(exit, this.#lastError);
  }

  #item(item: Untrusted, isDone: boolean): AgentSignal[] {
    const kind = asText(item["type"]) ?? "";
    const text = asText(item["text"]);
    if (kind === "agent_message" && isDone && text !== undefined) {
      this.#said = text;
      return [{ type: "message", text }];
    }
    const tool = TOOLS[kind];
    if (tool === undefined) return isDone ? [] : [{ type: "tool_call", tool: kind, summary: "" }];
    if (!isDone) return [{ type: "tool_call", tool, summary: summarize(item["changes"] ?? item) }];
    return [{ type: "tool_result", tool, isError: item["status"] === "failed" }];
  }

  /** The input that it reports includes what came from the cache. */
  #add(usage: Untrusted): TokenUsage {
    const cached = asCount(usage["cached_input_tokens"]) ?? 0;
    this.#used.input += Math.max(0, (asCount(usage["input_tokens"]) ?? 0) - cached);
    this.#used.cacheRead += cached;
    this.#used.output += asCount(usage["output_tokens"]) ?? 0;
    return { ...this.#used };
  }
}

function failed(text: string): AgentVerdict {
  return { isError: true, text, failure: classifyFailure(text) };
}
