import { defined } from "../../util/defined.js";
import type {
  AgentAccess,
  AgentCommand,
  AgentDriver,
  AgentReader,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
  TokenUsage,
} from "../types.js";
import { bedrockAccess, vertexAccess } from "./clouds.js";
import { failureOfStatus } from "./failure-of.js";
import { asCount, asRecord, asText, parseLine, summarize, type Untrusted } from "./json-line.js";
import { toMcpServers } from "./mcp-servers.js";
import { withoutResult } from "./no-result.js";
import { opencodeKeys } from "./opencode-keys.js";

const OWN: AgentAccess = {
  network: ["api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "opencode.ai"],
  secrets: [["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENCODE_API_KEY"]],
  logins: { ".local/share/opencode/auth.json": [] },
};

/** opencode, by `opencode run --format json`. A model is written as provider/model. */
export const opencode: AgentDriver = {
  name: "opencode",
  reportsCost: true,
  ...OWN,
  providers: [
    {
      name: "Bedrock",
      isChosen: ({ model = "" }) => model.startsWith("amazon-bedrock/"),
      access: ({ env }) => bedrockAccess(env),
    },
    {
      name: "Vertex AI",
      isChosen: ({ model = "" }) => /^google-vertex(?:-anthropic)?\//.test(model),
      access: ({ env }) =>
        vertexAccess(env["GOOGLE_VERTEX_LOCATION"] ?? env["GOOGLE_CLOUD_LOCATION"] ?? env["VERTEX_LOCATION"], {
          secrets: ["GOOGLE_VERTEX_API_KEY"],
        }),
    },
    {
      name: "its own configuration",
      isChosen: () => true,
      access: (setting) => ({ ...OWN, keys: opencodeKeys(setting) }),
    },
  ],
  startsMcp: true,
  versionArgv: ["opencode", "--version"],
  minVersion: "1.18.0",
  tried: ["1.18.33"],
  // The folder around its database also has the logins.
  sessionFolders: ["", "-wal", "-shm"].map((end) => `.local/share/opencode/opencode.db${end}`),
  sessionsOfWorkDir: true,
  installHint: "npm install -g opencode-ai",
  command: (request) => ({
    argv: ["opencode", "run", ...flags(request)],
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_SHARE: "1",
      ...(request.tools !== undefined && { OPENCODE_PERMISSION: permissionFor(request.tools) }),
    },
    ...configFor(request),
    stdin: request.systemPrompt === undefined ? request.prompt : `${request.systemPrompt}\n\n${request.prompt}`,
  }),
  reader: () => new OpencodeReader(),
};

/** Of the files that it merges, the one that nobody else writes. */
function configFor(request: AgentRequest): Pick<AgentCommand, "homeFiles"> {
  const servers = Object.entries(toMcpServers(request) ?? {});
  if (servers.length === 0) return {};
  const mcp = servers.map(([name, { command, args, env }]) => [
    name,
    { type: "local", command: [command, ...args], environment: env, enabled: true },
  ]);
  return { homeFiles: { ".config/opencode/config.json": JSON.stringify({ mcp: Object.fromEntries(mcp) }) } };
}

function flags({ model, sessionId, args = [] }: AgentRequest): string[] {
  return [
    // A plugin would be fetched from a registry; --auto answers every question that no rule denies with yes.
    ...["--format", "json", "--pure", "--auto"],
    ...(model === undefined ? [] : ["--model", model]),
    ...(sessionId === undefined ? [] : ["--session", sessionId]),
    ...args,
  ];
}

/** Its rules for these tools and no others. `bash(npm test*)` allows the commands that match the pattern. */
function permissionFor(tools: readonly string[]): string {
  const rules: Record<string, string | Record<string, string>> = { "*": "deny" };
  for (const tool of tools) {
    const [, name, pattern] = /^([^()]+)\((.+)\)$/s.exec(tool) ?? [];
    if (name === undefined || pattern === undefined) {
      rules[tool] = "allow";
      continue;
    }
    const known = rules[name];
    if (known === "allow") continue;
    rules[name] = { ...(typeof known === "object" ? known : { "*": "deny" }), [pattern]: "allow" };
  }
  return JSON.stringify(rules);
}

class OpencodeReader implements AgentReader {
  #said = "";
  #session: string | undefined;
  #message: string | undefined;
  #error: Untrusted | undefined;
  #isAnswered = false;
  #cost = 0;
  readonly #used: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

  line(text: string): AgentSignal[] {
    const event = parseLine(text);
    if (event === undefined) return [];
    const part = asRecord(event["part"]) ?? {};
    return [...this.#start(asText(event["sessionID"])), ...this.#read(event, part)];
  }

  /** It prints no result: its last step, its last error and its exit code are one together. */
  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    if (this.#error !== undefined) return toFailure(this.#error);
    if (exit.exitCode === 0 && this.#isAnswered) return { isError: false, text: this.#said };
    return withoutResult(exit);
  }

  #start(sessionId: string | undefined): AgentSignal[] {
    if (sessionId === undefined || this.#session !== undefined) return [];
    this.#session = sessionId;
    return [{ type: "session", sessionId }];
  }

  #read(event: Untrusted, part: Untrusted): AgentSignal[] {
    switch (event["type"]) {
      case "step_start": {
        // A stream that broke off is asked for again with the same message: neither a turn nor a sign of life.
        const message = asText(part["messageID"]);
        if (message === undefined || message === this.#message) return [];
        this.#message = message;
        this.#error = undefined;
        this.#isAnswered = false;
        return [{ type: "turn" }];
      }
      case "text": {
        const text = asText(part["text"]);
        if (text === undefined) return [];
        this.#said = text;
        return [{ type: "message", text }];
      }
      case "tool_use": {
        const state = asRecord(part["state"]) ?? {};
        const tool = asText(part["tool"]) ?? "tool";
        return [
          { type: "tool_call", tool, summary: summarize(state["input"]) },
          { type: "tool_result", tool, isError: state["status"] === "error" },
        ];
      }
      case "step_finish":
        this.#isAnswered = part["reason"] !== "tool-calls";
        return [this.#usage(part)];
      case "error":
        this.#error = asRecord(event["error"]) ?? {};
        return [];
      default:
        return [];
    }
  }

  /** A model whose price it doesn't know costs 0 there; that is no cost that it reported. */
  #usage(part: Untrusted): AgentSignal {
    const tokens = asRecord(part["tokens"]) ?? {};
    const cache = asRecord(tokens["cache"]) ?? {};
    this.#used.input += asCount(tokens["input"]) ?? 0;
    this.#used.output += (asCount(tokens["output"]) ?? 0) + (asCount(tokens["reasoning"]) ?? 0);
    this.#used.cacheRead += asCount(cache["read"]) ?? 0;
    this.#used.cacheWrite += asCount(cache["write"]) ?? 0;
    const cost = asCount(part["cost"]) ?? 0;
    this.#cost += cost;
    const used = { usage: { ...this.#used }, ...(this.#cost > 0 && { costUsd: this.#cost }) };
    return { type: "usage", ...used, ...(cost === 0 && { isUnpriced: true }) };
  }
}

/** The kind of an error, its status and whether it may be tried again are fields of it. */
function toFailure(error: Untrusted): AgentVerdict {
  const data = asRecord(error["data"]) ?? {};
  const name = asText(error["name"]);
  const known = name === "ProviderAuthError" ? "unauthenticated" : failureOfStatus(asCount(data["statusCode"]));
  return {
    isError: true,
    text: asText(data["message"]) ?? name ?? "it failed and said nothing",
    failure: known ?? (data["isRetryable"] === true ? "network" : "agent_error"),
    ...defined({ terminalReason: name }),
  };
}
