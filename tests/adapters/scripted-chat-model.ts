import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";

/** One call of a tool. */
export interface ScriptedCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** A chat model of LangChain that calls these tools one after the other, and then says `done`. */
export class ScriptedChatModel extends BaseChatModel {
  readonly #calls: ScriptedCall[];

  constructor(calls: readonly ScriptedCall[]) {
    super({});
    this.#calls = [...calls];
  }

  _llmType(): string {
    return "scripted";
  }

  bindTools(): this {
    return this;
  }

  async _generate(): Promise<object> {
    const call = this.#calls.shift();
    const id = `call-${this.#calls.length}`;
    const message = new AIMessage(
      call === undefined ? "done" : { content: "", tool_calls: [{ ...call, id, type: "tool_call" }] },
    );
    return { generations: [{ text: "", message }] };
  }
}
