import type { AgentSignal } from "../../types.js";
import { asCount, asRecord, asRecords, asText, summarize, type Untrusted } from "../json-line.js";
import { MessageParts } from "../message-parts.js";

/** Calls of tools whose names are remembered until their results. */
const MOST_CALLS = 1_000;

/** Reads what an agent says while it works (`session/update`). */
export class Updates {
  readonly #calls = new Map<string, string>();
  /** Calls that have ended, of an agent that names and changes a call by the same update. */
  readonly #ended = new Set<string>();
  readonly #parts = new MessageParts();
  #cost: number | undefined;
  #context: number | undefined;

  /** The last message that it said in full. */
  get said(): string {
    return this.#parts.said;
  }

  /** What the session has cost so far, with what it cost before it was continued. */
  get costUsd(): number | undefined {
    return this.#cost;
  }

  /** Tokens that the last request to the model had, as far as the agent says. */
  get context(): number | undefined {
    return this.#context;
  }

  /** Turns of this prompt so far. */
  get turns(): number {
    return this.#parts.turns;
  }

  /** Takes the update of a session that has not been prompted yet: only its cost counts, the rest is history. */
  skip(update: Untrusted): void {
    this.#price(update);
  }

  take(update: Untrusted): AgentSignal[] {
    switch (update["sessionUpdate"]) {
      case "agent_message_chunk":
        return this.#parts.piece(asText(asRecord(update["content"])?.["text"]));
      case "agent_thought_chunk":
        return this.#parts.piece();
      case "tool_call":
        return [...this.flush(), ...this.#parts.turn(), ...this.#call(update), ...this.#result(update)];
      case "tool_call_update":
        return [...this.flush(), ...this.#first(update), ...this.#result(update)];
      case "agent_message":
        return this.#parts.whole(textIn(update["content"]));
      case "usage_update":
        this.#price(update);
        return [{ type: "alive" }];
      case "agent_thought":
        return this.#parts.piece();
      case "plan":
      case "plan_update":
      case "terminal_update":
      case "terminal_output_chunk":
      case "tool_call_content_chunk":
        return [{ type: "alive" }];
      default:
        return [];
    }
  }

  /** Takes the call of a tool for which the agent asks a permission; one that it has named before is not another. */
  askedFor(call: Untrusted): AgentSignal[] {
    const id = asText(call["toolCallId"]);
    if (id === undefined || this.#calls.has(id)) return [];
    return [...this.flush(), ...this.#parts.turn(), ...this.#call(call)];
  }

  /** The message that came in pieces, once it is whole. */
  flush(): AgentSignal[] {
    return this.#parts.flush();
  }

  /** The call itself, where no other update names it: version 2 has one update for a call and its changes. */
  #first(update: Untrusted): AgentSignal[] {
    const id = asText(update["toolCallId"]);
    const isNamed = ["title", "name", "kind", "rawInput"].some((field) => update[field] !== undefined);
    if (id === undefined || !isNamed || this.#calls.has(id) || this.#ended.has(id)) return [];
    return [...this.#parts.turn(), ...this.#call(update)];
  }

  #call(update: Untrusted): AgentSignal[] {
    const title = asText(update["title"]);
    const tool = asText(update["name"]) ?? asText(update["kind"]) ?? title ?? "tool";
    const id = asText(update["toolCallId"]);
    if (id !== undefined && this.#calls.size < MOST_CALLS) this.#calls.set(id, tool);
    const input = asRecord(update["rawInput"]);
    const [place] = asRecords(update["locations"]).map((location) => asText(location["path"]));
    const isTelling = input !== undefined && Object.keys(input).length > 0;
    return [{ type: "tool_call", tool, summary: isTelling ? summarize(input) : (place ?? title ?? "") }];
  }

  #result(update: Untrusted): AgentSignal[] {
    const status = update["status"];
    if (status !== "completed" && status !== "failed") return [{ type: "alive" }];
    const id = asText(update["toolCallId"]) ?? "";
    if (this.#ended.has(id)) return [{ type: "alive" }];
    this.#parts.endTool();
    const tool = this.#calls.get(id);
    this.#calls.delete(id);
    if (id !== "" && this.#ended.size < MOST_CALLS) this.#ended.add(id);
    return [{ type: "tool_result", isError: status === "failed", ...(tool !== undefined && { tool }) }];
  }

  #price(update: Untrusted): void {
    if (update["sessionUpdate"] !== "usage_update") return;
    const cost = asRecord(update["cost"]);
    if (cost?.["currency"] === "USD") this.#cost = asCount(cost["amount"]) ?? this.#cost;
    this.#context = asCount(update["used"]) ?? this.#context;
  }
}

/** The text of a list of blocks. */
function textIn(content: unknown): string {
  return asRecords(content)
    .flatMap((block) => asText(block["text"]) ?? [])
    .join("");
}
