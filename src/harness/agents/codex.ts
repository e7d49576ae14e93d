import type {
  AgentDriver,
  AgentReader,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
  SessionTotals,
  TokenUsage,
} from "../types.js";
import { bedrockAccess } from "./clouds.js";
import { CHATGPT, chatGptAccess, isChatGpt, loginScript } from "./codex-login.js";
import { failureOfError } from "./failure-of.js";
import { asCount, asRecord, asText, parseLine, summarize, type Untrusted } from "./json-line.js";
import { toMcpServers } from "./mcp-servers.js";
import { withoutResult } from "./no-result.js";
import { added, beyond, noTokens } from "./token-usage.js";

const KEY = { host: "api.openai.com", header: "authorization", prefix: "sk-", baseUrl: "OPENAI_BASE_URL" };

/** Codex, by `codex exec --json`. It does not say what it costs, and has no list of tools. */
export const codex: AgentDriver = {
  name: "codex",
  reportsCost: false,
  cannot: ["tools"],
  network: ["api.openai.com"],
  secrets: [["CODEX_API_KEY", "OPENAI_API_KEY"]],
  keys: { CODEX_API_KEY: KEY, OPENAI_API_KEY: KEY },
  logins: { ".codex/auth.json": ["chatgpt.com", "auth.openai.com"] },
  providers: [
    {
      name: "Bedrock",
      isChosen: ({ model = "" }) => model.startsWith(BEDROCK),
      access: ({ env }) => bedrockAccess(env, { api: "mantle" }),
    },
    { name: "ChatGPT", isChosen: ({ env }) => isChatGpt(env), access: chatGptAccess },
  ],
  startsMcp: true,
  versionArgv: ["codex", "--version"],
  minVersion: "0.122.0",
  installHint: "npm install -g @openai/codex",
  tried: ["0.169.0"],
  sessionFolders: [".codex/sessions"],
  command: (request) => ({
    argv: [...startOf(request), "exec", ...(request.sessionId === undefined ? [] : ["resume"]), ...flags(request), "-"],
    stdin: request.systemPrompt === undefined ? request.prompt : `${request.systemPrompt}\n\n${request.prompt}`,
  }),
  reader: (before) => new CodexReader(before),
};

/** What a model on Bedrock starts with. */
const BEDROCK = "amazon-bedrock/";

/** It reads its key from a variable of its own only. An empty one would hide its login. */
const WITH_KEY =
  '[ -n "$CODEX_API_KEY" ] || [ -z "$OPENAI_API_KEY" ] || export CODEX_API_KEY="$OPENAI_API_KEY"; exec codex "$@"';

function startOf({ env = {} }: AgentRequest): string[] {
  return ["/bin/sh", "-c", isChatGpt(env) ? loginScript(env[CHATGPT] ?? "") : WITH_KEY, "codex"];
}

function flags(request: AgentRequest): string[] {
  const { model, sessionId, args = [] } = request;
  return [
    ...(sessionId === undefined ? [] : [sessionId]),
    ...["--json", "--skip-git-repo-check", "--ignore-user-config"],
    // Its own sandbox cannot be set up within ours, which confines it already.
    "--dangerously-bypass-approvals-and-sandbox",
    // What it would fetch and report beside its work.
    ...["--disable", "plugins", "--disable", "apps", "-c", "analytics.enabled=false"],
    ...providerFlags(request),
    ...mcpFlags(request),
    ...(model === undefined ? [] : ["--model", model.replace(BEDROCK, "")]),
    ...args,
  ];
}

/** A gateway is a provider of its own: it need not speak the WebSockets that Codex tries first with OpenAI. */
function providerFlags({ model = "", env = {} }: AgentRequest): string[] {
  if (model.startsWith(BEDROCK)) return ["-c", 'model_provider="amazon-bedrock"'];
  const url = env["OPENAI_BASE_URL"] ?? "";
  if (url === "" || isChatGpt(env)) return [];
  const provider = `{name="gateway",base_url=${toToml(url)},env_key="CODEX_API_KEY",wire_api="responses",supports_websockets=false}`;
  return ["-c", 'model_provider="gateway"', "-c", `model_providers.gateway=${provider}`];
}

/** What a server may take to start. A program that is fetched first takes longer than the ten seconds that Codex gives it. */
const MCP_START_SECONDS = 60;

/** Each server is a table of its configuration. A server gets no variables but those that its table names. */
function mcpFlags(request: AgentRequest): string[] {
  const { secretNames = [] } = request;
  return Object.entries(toMcpServers(request) ?? {}).flatMap(([name, { command, args, env }]) => {
    const variables = Object.entries(env).map(([key, value]) => `${key}=${toToml(value)}`);
    const table = [
      `command=${toToml(command)}`,
      `args=[${args.map(toToml).join(",")}]`,
      `env={${variables.join(",")}}`,
      `env_vars=[${secretNames.map(toToml).join(",")}]`,
      `startup_timeout_sec=${MCP_START_SECONDS}`,
    ];
    return ["-c", `mcp_servers.${name}={${table.join(",")}}`];
  });
}

/** A string of TOML has the escapes of JSON, and must not have the one control character that JSON leaves as it is. */
function toToml(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007f");
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
  #used: TokenUsage = noTokens();
  readonly #open = new Set<string>();
  #hasResults = false;
  readonly #before: SessionTotals | undefined;

  constructor(before: SessionTotals | undefined) {
    this.#before = before;
  }

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
          { type: "usage", ...this.#count(toUsage(asRecord(event["usage"]) ?? {})) },
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
    return withoutResult(exit, { error: this.#lastError });
  }

  #item(item: Untrusted, isDone: boolean): AgentSignal[] {
    const kind = asText(item["type"]) ?? "";
    const text = asText(item["text"]);
    const tool = TOOLS[kind];
    if (kind === "error") return [];
    const turn = this.#turnOf(asText(item["id"]) ?? "", tool !== undefined, isDone);
    if (kind === "agent_message" && isDone && text !== undefined) {
      this.#said = text;
      return [...turn, { type: "message", text }];
    }
    if (tool === undefined) return isDone ? turn : [...turn, { type: "tool_call", tool: kind, summary: "" }];
    if (!isDone) return [...turn, { type: "tool_call", tool, summary: summarize(item["changes"] ?? item) }];
    return [...turn, { type: "tool_result", tool, isError: item["status"] === "failed" }];
  }

  /** It does not report the answers of its model: what follows the results of all tools is taken for the next one. */
  #turnOf(id: string, isTool: boolean, isDone: boolean): AgentSignal[] {
    const isNext = this.#hasResults && this.#open.size === 0;
    if (isNext) this.#hasResults = false;
    if (isTool && isDone) {
      this.#open.delete(id);
      this.#hasResults = true;
    } else if (isTool) this.#open.add(id);
    return isNext ? [{ type: "turn" }] : [];
  }

  /** Newer versions count the whole session, as a count that goes on from the last one shows. */
  #count(total: TokenUsage): Omit<Extract<AgentSignal, { type: "usage" }>, "type"> {
    const own = this.#before && beyond(total, this.#before.usage);
    this.#used = own ?? added(this.#used, total);
    return { usage: this.#used, session: { usage: total } };
  }
}

/** The input that it reports includes what came from the cache. */
function toUsage(usage: Untrusted): TokenUsage {
  const cacheRead = asCount(usage["cached_input_tokens"]) ?? 0;
  const cacheWrite = asCount(usage["cache_write_input_tokens"]) ?? 0;
  const input = Math.max(0, (asCount(usage["input_tokens"]) ?? 0) - cacheRead - cacheWrite);
  return { input, output: asCount(usage["output_tokens"]) ?? 0, cacheRead, cacheWrite };
}

function failed(text: string): AgentVerdict {
  return { isError: true, text, failure: failureOfError(text) };
}
