import { defined } from "../../util/defined.js";
import type {
  AgentAccess,
  AgentDriver,
  AgentFailure,
  AgentKey,
  AgentReader,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
} from "../types.js";
import { failureOfStatus } from "./failure-of.js";
import { asCount, asRecord, asText, parseLine, summarize, type Untrusted } from "./json-line.js";
import { toMcpServers } from "./mcp-servers.js";
import { withoutResult } from "./no-result.js";

const OWN: AgentAccess = {
  network: ["api.github.com", "*.githubcopilot.com"],
  secrets: [["COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"]],
};

/** Which hosts take it depends on the subscription and on the GitHub. */
const GITHUB: AgentKey = { unknown: "the hosts that Copilot CLI sends it to are not known beforehand" };

/** A provider of the user's own. Its kind decides in which header it wants a key. */
const PROVIDER: Readonly<Record<string, AgentKey>> = {
  COPILOT_PROVIDER_API_KEY: { baseUrl: "COPILOT_PROVIDER_BASE_URL" },
  COPILOT_PROVIDER_BEARER_TOKEN: { baseUrl: "COPILOT_PROVIDER_BASE_URL", header: "authorization" },
};

/**
 * Copilot CLI, by `copilot --output-format json`, with a token for GitHub or with a key for another provider. It says
 * neither its tokens nor its cost. GH_TOKEN and GITHUB_TOKEN, which it reads too, can do more than it needs.
 */
export const copilot: AgentDriver = {
  name: "copilot",
  reportsCost: false,
  ...OWN,
  keys: { COPILOT_GITHUB_TOKEN: GITHUB, ...PROVIDER },
  startsMcp: true,
  versionArgv: ["copilot", "--version"],
  minVersion: "1.0.100",
  tried: ["1.0.102"],
  sessionFolders: [".copilot/session-state"],
  installHint: "npm install -g @github/copilot",
  command: (request) => ({
    argv: ["copilot", ...flags(request)],
    env: { COPILOT_AUTO_UPDATE: "false" },
    stdin: request.systemPrompt === undefined ? request.prompt : `${request.systemPrompt}\n\n${request.prompt}`,
  }),
  reader: () => new CopilotReader(),
};

function flags(request: AgentRequest): string[] {
  const { model, tools, sessionId, args = [] } = request;
  // A server gets none of its variables but PATH.
  const mcpServers = toMcpServers(request, { refer: (name) => `\${${name}}`, more: { type: "stdio", tools: ["*"] } });
  return [
    ...["--output-format", "json", "--no-color", "--no-ask-user", "--no-remote", "--disable-client-telemetry"],
    ...(mcpServers === undefined ? [] : ["--additional-mcp-config", JSON.stringify({ mcpServers })]),
    ...(model === undefined ? [] : ["--model", model]),
    ...(sessionId === undefined ? [] : [`--resume=${sessionId}`]),
    ...(tools === undefined ? ["--allow-all"] : tools.map((tool) => `--allow-tool=${tool}`)),
    ...args,
  ];
}

const ERROR_TYPES: Readonly<Record<string, AgentFailure>> = {
  authentication: "unauthenticated",
  authorization: "unauthenticated",
  quota: "quota",
  rate_limit: "rate_limit",
};

class CopilotReader implements AgentReader {
  #said = "";
  #error: Untrusted | undefined;
  /** Whether the last request to the model broke off; the error itself does not say so. */
  #isCut = false;
  readonly #tools = new Map<string, string>();

  line(text: string): AgentSignal[] {
    const event = parseLine(text);
    const data = asRecord(event?.["data"]) ?? {};
    switch (event?.["type"]) {
      case "assistant.turn_start":
        this.#error = undefined;
        this.#isCut = false;
        return [{ type: "turn" }];
      case "model.call_failure":
        this.#isCut = data["failureKind"] === "transport";
        return [];
      case "assistant.message_delta":
      case "assistant.reasoning_delta":
      case "assistant.tool_call_delta":
        return [{ type: "alive" }];
      case "assistant.message": {
        const words = asText(data["content"]);
        if (words === undefined) return [];
        this.#said = words;
        return [{ type: "message", text: words }];
      }
      case "tool.execution_start": {
        const tool = asText(data["toolName"]) ?? "tool";
        this.#tools.set(asText(data["toolCallId"]) ?? "", tool);
        return [{ type: "tool_call", tool, summary: summarize(data["arguments"]) }];
      }
      case "tool.execution_complete": {
        const id = asText(data["toolCallId"]) ?? "";
        const tool = this.#tools.get(id);
        this.#tools.delete(id);
        return [{ type: "tool_result", isError: data["success"] !== true, ...defined({ tool }) }];
      }
      case "session.error":
        this.#error = data;
        return [];
      case "result":
        return this.#end(event);
      default:
        return [];
    }
  }

  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    return this.#error === undefined ? withoutResult(exit) : toFailure(this.#error, this.#isCut);
  }

  #end(event: Untrusted): AgentSignal[] {
    const sessionId = asText(event["sessionId"]);
    const signals: AgentSignal[] = sessionId === undefined ? [] : [{ type: "session", sessionId }];
    if (event["exitCode"] === 0) {
      return [...signals, { type: "result", result: { isError: false, text: this.#said } }];
    }
    return [...signals, { type: "result", result: toFailure(this.#error ?? {}, this.#isCut) }];
  }
}

function toFailure(error: Untrusted, isCut: boolean): AgentVerdict {
  const kind = asText(error["errorType"]);
  const known = kind !== undefined && Object.hasOwn(ERROR_TYPES, kind) ? ERROR_TYPES[kind] : undefined;
  return {
    isError: true,
    text: asText(error["message"]) ?? "it failed and said nothing",
    failure: known ?? failureOfStatus(asCount(error["statusCode"])) ?? (isCut ? "network" : "agent_error"),
    ...defined({ terminalReason: kind }),
  };
}
