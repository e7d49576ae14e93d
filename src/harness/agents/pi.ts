import { defined } from "../../util/defined.js";
import type {
  AgentCommand,
  AgentDriver,
  AgentReader,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
  TokenUsage,
} from "../types.js";
import { bedrockAccess, vertexAccess } from "./clouds.js";
import { failureOfError } from "./failure-of.js";
import { asCount, asRecord, asRecords, asText, parseLine, summarize, type Untrusted } from "./json-line.js";
import { withoutResult } from "./no-result.js";

/** Pi, by `pi -p --mode json`. */
export const pi: AgentDriver = {
  name: "pi",
  reportsCost: true,
  network: ["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"],
  secrets: [["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"]],
  keys: {
    ANTHROPIC_API_KEY: {
      ...{ host: "api.anthropic.com", header: "x-api-key", prefix: "sk-ant-" },
      baseUrl: "ANTHROPIC_BASE_URL",
    },
    OPENAI_API_KEY: { host: "api.openai.com", header: "authorization", prefix: "sk-", baseUrl: "OPENAI_BASE_URL" },
    GEMINI_API_KEY: {
      ...{ host: "generativelanguage.googleapis.com", header: "x-goog-api-key" },
      baseUrl: "GEMINI_BASE_URL",
    },
  },
  logins: { ".pi/agent/auth.json": [] },
  providers: [
    {
      name: "Bedrock",
      isChosen: ({ model = "" }) => model.startsWith("amazon-bedrock/"),
      access: ({ env }) => bedrockAccess(env),
    },
    {
      name: "Vertex AI",
      isChosen: ({ model = "" }) => model.startsWith("google-vertex/"),
      access: ({ env }) => vertexAccess(env["GOOGLE_CLOUD_LOCATION"], { secrets: ["GOOGLE_CLOUD_API_KEY"] }),
    },
  ],
  versionArgv: ["pi", "--version"],
  minVersion: "0.80.0",
  installHint: "npm install -g @earendil-works/pi-coding-agent, with Node 22.19 or later",
  tried: ["0.87.1"],
  sessionFolders: [".pi/agent/sessions"],
  command: (request) => ({
    argv: ["pi", ...flags(request)],
    // No news of versions or models; the model's own service is reached all the same.
    env: { PI_OFFLINE: "1", PI_TELEMETRY: "0" },
    stdin: request.prompt,
    ...gatewayOf(request),
  }),
  reader: () => new PiReader(),
};

/** It takes another address of a service from a file only. */
const GATEWAYS: Readonly<Record<string, string>> = {
  ANTHROPIC_BASE_URL: "anthropic",
  OPENAI_BASE_URL: "openai",
  GEMINI_BASE_URL: "google",
};

function gatewayOf({ env = {} }: AgentRequest): Pick<AgentCommand, "homeFiles"> {
  const providers = Object.entries(GATEWAYS).flatMap(([name, provider]) => {
    const baseUrl = asText(env[name]);
    return baseUrl === undefined ? [] : [[provider, { baseUrl }]];
  });
  if (providers.length === 0) return {};
  return { homeFiles: { ".pi/agent/models.json": JSON.stringify({ providers: Object.fromEntries(providers) }) } };
}

function flags({ model, systemPrompt, tools, sessionId, args = [] }: AgentRequest): string[] {
  return [
    ...["-p", "--mode", "json", "--no-extensions", "--no-skills"],
    ...(model === undefined ? [] : ["--model", model]),
    ...(systemPrompt === undefined ? [] : ["--append-system-prompt", systemPrompt]),
    ...(tools === undefined ? [] : ["--tools", tools.join(",")]),
    // By `--session-id` it would start an empty session, without an error, where it finds none of this directory.
    ...(sessionId === undefined ? [] : ["--fork", sessionId]),
    ...args,
  ];
}

class PiReader implements AgentReader {
  #said = "";
  #error = "";
  #stopReason: string | undefined;
  #cost: number | undefined;
  readonly #used: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

  line(text: string): AgentSignal[] {
    const event = parseLine(text);
    switch (event?.["type"]) {
      case "session": {
        const sessionId = asText(event["id"]);
        return sessionId === undefined ? [] : [{ type: "session", sessionId }];
      }
      case "turn_start":
        return [{ type: "turn" }];
      case "message_end":
        return this.#message(asRecord(event["message"]) ?? {});
      case "tool_execution_start":
        return [{ type: "tool_call", tool: asText(event["toolName"]) ?? "tool", summary: summarize(event["args"]) }];
      case "tool_execution_end":
        return [{ type: "tool_result", isError: event["isError"] === true }];
      case "agent_end":
        // It tries again by itself, and ends once more.
        return event["willRetry"] === true ? [] : [{ type: "result", result: this.#verdict() }];
      default:
        return [];
    }
  }

  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    return withoutResult(exit, { said: this.#said, error: this.#error });
  }

  #message(message: Untrusted): AgentSignal[] {
    if (message["role"] !== "assistant") return [];
    this.#stopReason = asText(message["stopReason"]);
    this.#error = asText(message["errorMessage"]) ?? "";
    const texts = asRecords(message["content"]).flatMap((block) =>
      block["type"] === "text" ? (asText(block["text"]) ?? []) : [],
    );
    this.#said = texts.join("\n") || this.#said;
    const signals: AgentSignal[] = texts.map((text) => ({ type: "message", text }));
    const usage = asRecord(message["usage"]);
    return usage === undefined ? signals : [...signals, this.#usage(usage)];
  }

  #usage(usage: Untrusted): AgentSignal {
    const names = ["input", "output", "cacheRead", "cacheWrite"] as const;
    const counts = names.map((key) => asCount(usage[key]) ?? 0);
    for (const [at, key] of names.entries()) this.#used[key] += counts[at] ?? 0;
    const cost = asCount(asRecord(usage["cost"])?.["total"]);
    // A model whose price it doesn't know costs 0 there; that is no cost that it reported.
    const isPriced = cost !== undefined && (cost > 0 || counts.every((count) => count === 0));
    if (isPriced) this.#cost = (this.#cost ?? 0) + cost;
    const used = { usage: { ...this.#used }, ...defined({ costUsd: this.#cost }) };
    return { type: "usage", ...used, ...(!isPriced && { isUnpriced: true }) };
  }

  #verdict(): AgentVerdict {
    const isError = this.#stopReason === "error" || this.#stopReason === "aborted";
    const text = isError ? this.#error || (this.#stopReason ?? "") : this.#said;
    return {
      isError,
      text,
      ...(isError && { failure: failureOfError(this.#error) }),
      ...(this.#stopReason !== undefined && { terminalReason: this.#stopReason }),
    };
  }
}
