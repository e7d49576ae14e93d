import type { AgentSignal } from "../types.js";

/** The end of a message that is kept. */
const MOST_SAID = 50_000;

/** The messages of an agent that sends them in pieces, and its turns: one starts with what comes first after the result of a tool. */
export class MessageParts {
  #message = "";
  #said = "";
  #isNewTurn = true;
  #turns = 0;

  /** The last message that was said in full. */
  get said(): string {
    return this.#said;
  }

  /** Turns so far. */
  get turns(): number {
    return this.#turns;
  }

  /** Takes a piece of a message, or a sign that the model is at work. */
  piece(text = ""): AgentSignal[] {
    this.#message = (this.#message + text).slice(-MOST_SAID);
    return [...this.turn(), { type: "alive" }];
  }

  /** Takes a message that is whole; pieces that came before were of it. */
  whole(text: string): AgentSignal[] {
    if (text !== "") this.#message = text.slice(-MOST_SAID);
    return [...this.turn(), { type: "alive" }];
  }

  /** The start of a turn, if what comes now is the first of it. */
  turn(): AgentSignal[] {
    if (!this.#isNewTurn) return [];
    this.#isNewTurn = false;
    this.#turns += 1;
    return [{ type: "turn" }];
  }

  /** Notes that a tool has given its result. */
  endTool(): void {
    this.#isNewTurn = true;
  }

  /** The message that came in pieces, once it is whole. */
  flush(): AgentSignal[] {
    const text = this.#message;
    if (text === "") return [];
    this.#message = "";
    this.#said = text;
    return [{ type: "message", text }];
  }
}
