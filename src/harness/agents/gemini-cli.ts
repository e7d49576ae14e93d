import { defined } from "../../util/defined.js";
import type {
  AgentCommand,
  AgentDriver,
  AgentFailure,
  AgentReader,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
} from "../types.js";
import { isOn, vertexAccess } from "./clouds.js";
import { failureOfError, failureOfStatus } from "./failure-of.js";
import { asCount, asRecord, asText, parseLine, summarize, type Untrusted } from "./json-line.js";
import { toMcpServers } from "./mcp-servers.js";
import { MessageParts } from "./message-parts.js";
import { withoutResult } from "./no-result.js";

/** Gemini CLI, by `gemini --output-format stream-json`. It does not say what it costs. */
export const geminiCli: AgentDriver = {
  name: "gemini-cli",
  reportsCost: false,
  cannot: ["tools"],
  network: ["generativelanguage.googleapis.com"],
  secrets: [["GEMINI_API_KEY"]],
  keys: {
    GEMINI_API_KEY: {
      host: "generativelanguage.googleapis.com",
      header: "x-goog-api-key",
      baseUrl: "GOOGLE_GEMINI_BASE_URL",
    },
  },
  logins: { ".gemini/oauth_creds.json": ["cloudcode-pa.googleapis.com", "oauth2.googleapis.com"] },
  providers: [
    {
      name: "Vertex AI",
      by: "the variable GOOGLE_GENAI_USE_VERTEXAI",
      isChosen: ({ env }) => isOn(env["GOOGLE_GENAI_USE_VERTEXAI"]),
      access: ({ env }) =>
        vertexAccess(env["GOOGLE_CLOUD_LOCATION"], { secrets: ["GOOGLE_API_KEY"], baseUrl: "GOOGLE_VERTEX_BASE_URL" }),
    },
  ],
  startsMcp: true,
  versionArgv: ["gemini", "--version"],
  minVersion: "0.61.0",
  tried: ["0.61.0"],
  sessionFolders: [".gemini/tmp"],
  sessionsOfWorkDir: true,
  installHint: "npm install -g @google/gemini-cli",
  command: (request) => ({
    argv: [...START, ...flags(request)],
    // It starts itself a second time to have more memory; the memory of the sandbox is ours to limit.
    env: { GEMINI_CLI_NO_RELAUNCH: "true", GEMINI_TELEMETRY_ENABLED: "false" },
    ...settingsFor(request),
    stdin: request.systemPrompt === undefined ? request.prompt : `${request.systemPrompt}\n\n${request.prompt}`,
  }),
  reader: () => new GeminiReader(),
};

/** It uses a login that is there only where it is told to. */
const START = [
  "/bin/sh",
  "-c",
  '[ -n "$GEMINI_API_KEY$GOOGLE_API_KEY" ] || [ ! -f "$HOME/.gemini/oauth_creds.json" ] || export GOOGLE_GENAI_USE_GCA=true; exec gemini "$@"',
  "gemini",
];

/** It reads its MCP servers from a file only. With a gateway it refuses a key from the environment, unless that file says that a key is to be used. */
function settingsFor(request: AgentRequest): Pick<AgentCommand, "homeFiles"> {
  const isGateway = request.env?.["GOOGLE_GEMINI_BASE_URL"] !== undefined;
  const mcpServers = toMcpServers(request, { refer: (name) => `$${name}`, more: { trust: true } });
  if (!isGateway && mcpServers === undefined) return {};
  const settings = {
    ...(isGateway && { security: { auth: { selectedType: "gemini-api-key" } } }),
    ...defined({ mcpServers }),
  };
  return { homeFiles: { ".gemini/settings.json": JSON.stringify(settings) } };
}

function flags({ model, sessionId, args = [] }: AgentRequest): string[] {
  return [
    ...["--output-format", "stream-json", "--skip-trust", "--approval-mode", "yolo"],
    ...(model === undefined ? [] : ["--model", model]),
    ...(sessionId === undefined ? [] : ["--resume", sessionId]),
    ...args,
  ];
}

/** What its own exit codes mean, and the one that 529 becomes. */
const EXITS: Readonly<Record<number, AgentFailure | "turns">> = {
  41: "unauthenticated",
  53: "turns",
  [529 % 256]: "rate_limit",
};

class GeminiReader implements AgentReader {
  readonly #parts = new MessageParts();
  #error: string | undefined;
  readonly #tools = new Map<string, string>();

  line(text: string): AgentSignal[] {
    const event = parseLine(text);
    switch (event?.["type"]) {
      case "init": {
        const [sessionId, model] = [asText(event["session_id"]), asText(event["model"])];
        return sessionId === undefined ? [] : [{ type: "session", sessionId, ...defined({ model }) }];
      }
      case "message":
        if (event["role"] !== "assistant") return [];
        return this.#parts.piece(asText(event["content"]));
      case "tool_use":
        return [...this.#parts.flush(), ...this.#parts.turn(), this.#call(event)];
      case "tool_result":
        this.#parts.endTool();
        return [{ type: "tool_result", ...this.#named(event), isError: event["status"] !== "success" }];
      case "error":
        if (event["severity"] !== "warning") this.#error = asText(event["message"]);
        return [];
      case "result":
        return [...this.#parts.flush(), ...this.#end(event)];
      default:
        return [];
    }
  }

  /** The status of a request that failed is in its exit code, of which a process has only the lower eight bits. */
  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    const text = this.#error;
    const known = EXITS[exit.exitCode] ?? failureOfStatus(exit.exitCode + 256);
    const isOwn = exit.signal === undefined && known !== undefined;
    if (isOwn && known === "turns") return { isError: true, text: text ?? this.#parts.said, limit: "turns" };
    if (isOwn && known !== "turns") return { isError: true, text: text ?? exit.stderr, failure: known };
    return text === undefined ? withoutResult(exit) : { isError: true, text, failure: failureIn(text) };
  }

  #call(event: Untrusted): AgentSignal {
    const tool = asText(event["tool_name"]) ?? "tool";
    this.#tools.set(asText(event["tool_id"]) ?? "", tool);
    return { type: "tool_call", tool, summary: summarize(event["parameters"]) };
  }

  #named(event: Untrusted): { tool?: string } {
    const id = asText(event["tool_id"]) ?? "";
    const tool = this.#tools.get(id);
    this.#tools.delete(id);
    return defined({ tool });
  }

  #end(event: Untrusted): AgentSignal[] {
    const stats = asRecord(event["stats"]) ?? {};
    const cacheRead = asCount(stats["cached"]) ?? 0;
    const input = Math.max(0, (asCount(stats["input_tokens"]) ?? 0) - cacheRead);
    const usage = { input, output: asCount(stats["output_tokens"]) ?? 0, cacheRead, cacheWrite: 0 };
    if (event["status"] === "success") {
      return [
        { type: "usage", usage },
        { type: "result", result: { isError: false, text: this.#parts.said } },
      ];
    }
    // Its exit code says more than the kind that is here, which is always "unknown".
    this.#error = asText(asRecord(event["error"])?.["message"]) ?? this.#error ?? "it failed and said nothing";
    return [{ type: "usage", usage }];
  }
}

/** A request that broke off has no status; the error is then the program's own, and not the service's JSON. */
function failureIn(text: string): AgentFailure {
  const own = /^\[API Error: ([^{}\n]*)\]$/.exec(text)?.[1] ?? "";
  return failureOfError(own) === "network" ? "network" : "agent_error";
}
