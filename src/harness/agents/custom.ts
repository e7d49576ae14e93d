import { defined } from "../../util/defined.js";
import type { AgentDriver, AgentFailure, AgentReader, AgentSignal, AgentVerdict } from "../types.js";
import { asCount, asRecord, asText, parseLine } from "./json-line.js";
import { withoutResult } from "./no-result.js";

const MOST_KEPT = 50_000;
/** The failures that such a program can name. */
const FAILURES: readonly AgentFailure[] = ["rate_limit", "network", "unauthenticated", "quota", "refused"];

/** A program of the user's as an agent: the prompt on stdin; text, or one JSON event a line, on stdout. */
export function customAgent(command: readonly string[], output: "text" | "events"): AgentDriver {
  return {
    name: "command",
    reportsCost: output === "events",
    cannot: ["tools", "continue"],
    network: [],
    secrets: [],
    installHint: "or put it into the repository",
    command: ({ prompt, systemPrompt }) => ({
      argv: command,
      stdin: systemPrompt === undefined ? prompt : `${systemPrompt}\n\n${prompt}`,
    }),
    reader: () => (output === "text" ? new TextReader() : new EventReader()),
  };
}

/** Every line is something said, and the exit code is the verdict. */
class TextReader implements AgentReader {
  #said = "";

  line(text: string): AgentSignal[] {
    this.#said = `${this.#said}${text}\n`.slice(-MOST_KEPT);
    return [{ type: "message", text }];
  }

  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    if (exit.exitCode !== 0) return withoutResult(exit, { said: this.#said.trim(), isUnknown: true });
    return { isError: false, text: this.#said.trim() };
  }
}

/** Events of our own: `message`, `tool_call`, `turn`, `usage`, `result`. */
class EventReader implements AgentReader {
  #said = "";

  line(text: string): AgentSignal[] {
    const event = parseLine(text) ?? {};
    const words = asText(event["text"]);
    switch (event["type"]) {
      case "message":
        this.#said = words ?? this.#said;
        return words === undefined ? [] : [{ type: "message", text: words }];
      case "tool_call":
        return [{ type: "tool_call", tool: asText(event["tool"]) ?? "tool", summary: asText(event["summary"]) ?? "" }];
      case "turn":
        return [{ type: "turn" }];
      case "usage": {
        const usage = asRecord(event["usage"]) ?? {};
        const costUsd = asCount(event["costUsd"]);
        const names = ["input", "output", "cacheRead", "cacheWrite"] as const;
        const [input = 0, output = 0, cacheRead = 0, cacheWrite = 0] = names.map((name) => asCount(usage[name]));
        return [{ type: "usage", usage: { input, output, cacheRead, cacheWrite }, ...defined({ costUsd }) }];
      }
      case "result": {
        const isError = event["isError"] === true;
        const failure = FAILURES.find((known) => known === event["failure"]) ?? "agent_error";
        return [{ type: "result", result: { isError, text: words ?? this.#said, ...(isError && { failure }) } }];
      }
      default:
        return [];
    }
  }

  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    return exit.exitCode === 0
      ? { isError: false, text: this.#said }
      : withoutResult(exit, { said: this.#said, isUnknown: true });
  }
}
