import { defined } from "../../../util/defined.js";
import type {
  AgentDialog,
  AgentFailure,
  AgentHost,
  AgentReader,
  AgentRequest,
  AgentSignal,
  AgentVerdict,
  TokenUsage,
} from "../../types.js";
import { failureOfStatus } from "../failure-of.js";
import { asCount, asRecord, asText, type Untrusted } from "../json-line.js";
import { withoutResult } from "../no-result.js";
import { chooseModel } from "./choose-model.js";
import { ClientCalls } from "./client-calls.js";
import {
  errorLine,
  notificationLine,
  RPC_CODES,
  RpcError,
  type RpcId,
  type RpcMessage,
  readMessage,
  requestLine,
  resultLine,
} from "./rpc.js";
import { Updates } from "./updates.js";
import { type AcpVersion, mayBeV2, V1, V2 } from "./versions.js";

/** What is waited for; each has one answer. */
type Step = "initialize" | "session" | "history" | "model" | "prompt" | "over";

/** One prompt to an agent that speaks ACP: initialize, make or continue a session, choose the model, prompt. */
export class AcpDialog implements AgentDialog {
  readonly #request: AgentRequest;
  readonly #host: AgentHost;
  readonly #calls: ClientCalls;
  readonly #updates = new Updates();
  #version: AcpVersion = V1;
  #step: Step = "initialize";
  /** Whether the agent has begun with the prompt, for one that reports the end by an update. */
  #isAtWork = false;
  #asked = 0;
  #sessionId: string | undefined;
  #costBefore: number | undefined;

  constructor(request: AgentRequest, host: AgentHost) {
    this.#request = request;
    this.#host = host;
    this.#calls = new ClientCalls(host);
  }

  start(): void {
    this.#ask("initialize", "initialize", this.#version.hello);
  }

  line(text: string): AgentSignal[] {
    const message = readMessage(text);
    if (message === undefined || this.#step === "over") return [];
    switch (message.type) {
      case "request":
        void this.#serve(message.id, message.method, message.params);
        return this.#requested(message.method, message.params);
      case "notification":
        return message.method === "session/update" ? this.#update(message.params) : [];
      case "response":
        return message.id === this.#asked ? this.#next(message) : [];
    }
  }

  overlong(): AgentSignal[] {
    return this.#fail("it sent a line that is longer than 4 MiB");
  }

  end(exit: Parameters<AgentReader["end"]>[0]): AgentVerdict {
    return withoutResult(exit, { said: this.#updates.said, isUnknown: true });
  }

  cancel(): void {
    this.#calls.cancel();
    if (this.#step === "prompt") this.#host.send(notificationLine("session/cancel", { sessionId: this.#sessionId }));
  }

  async close(): Promise<void> {
    this.#step = "over";
    await this.#calls.close();
  }

  #ask(step: Step, method: string, params: object): void {
    this.#step = step;
    this.#asked += 1;
    this.#host.send(requestLine(this.#asked, method, params));
  }

  async #serve(id: RpcId, method: string, params: Untrusted): Promise<void> {
    try {
      if (this.#sessionId === undefined || params["sessionId"] !== this.#sessionId) {
        throw new RpcError(RPC_CODES.invalidParams, "sessionId is not the one of this session");
      }
      this.#host.send(resultLine(id, await this.#calls.answer(method, params)));
    } catch (error) {
      const { code, message } = error instanceof RpcError ? error : { code: RPC_CODES.internal, message: "it failed" };
      this.#host.send(errorLine(id, { code, message }));
    }
  }

  /** Some agents name a tool that needs a permission only when they ask for it. */
  #requested(method: string, params: Untrusted): AgentSignal[] {
    const call = asRecord(params["toolCall"]) ?? asRecord(asRecord(params["subject"])?.["toolCall"]);
    const isCall = method === "session/request_permission" && params["sessionId"] === this.#sessionId;
    if (!isCall || call === undefined || this.#step !== "prompt") return [{ type: "alive" }];
    return [{ type: "alive" }, ...this.#updates.askedFor(call)];
  }

  #update(params: Untrusted): AgentSignal[] {
    const update = asRecord(params["update"]);
    if (update === undefined) return [];
    if (this.#step === "prompt") {
      if (params["sessionId"] !== this.#sessionId) return [];
      return update["sessionUpdate"] === "state_update" ? this.#state(update) : this.#updates.take(update);
    }
    // What a session says before it is prompted is its history.
    this.#updates.skip(update);
    return [{ type: "alive" }];
  }

  /** An agent of version 2 is done when it is idle again. */
  #state(update: Untrusted): AgentSignal[] {
    if (this.#version.endsByAnswer) return [];
    if (update["state"] !== "idle") {
      this.#isAtWork = true;
      return [{ type: "alive" }];
    }
    if (!this.#isAtWork) return [{ type: "alive" }];
    const error = asRecord(update["error"]);
    if (update["stopReason"] !== "error" || error === undefined) return this.#done(update);
    return [...this.#updates.flush(), ...this.#used(), ...this.#refused(error)];
  }

  #next({ result = {}, error }: Extract<RpcMessage, { type: "response" }>): AgentSignal[] {
    if (this.#step === "initialize" && this.#version === V1 && mayBeV2({ result, ...defined({ error }) })) {
      this.#version = V2;
      this.start();
      return [{ type: "alive" }];
    }
    if (this.#step === "history") return this.#prompt();
    if (error !== undefined) return [...this.#updates.flush(), ...this.#used(), ...this.#refused(error)];
    switch (this.#step) {
      case "initialize":
        return this.#open(result);
      case "session":
        return this.#opened(result);
      case "model":
        return this.#prompt();
      case "prompt":
        if (this.#version.endsByAnswer) return this.#done(result);
        return asText(result["messageId"])
          ? [{ type: "alive" }]
          : this.#fail("it took a prompt without giving it an id");
      case "over":
        return [];
    }
  }

  #open(agent: Untrusted): AgentSignal[] {
    const version = agent["protocolVersion"];
    if (version !== this.#version.number) {
      return this.#fail(`it speaks version ${JSON.stringify(version)} of the protocol; 1 and 2 are supported`);
    }
    const { sessionId } = this.#request;
    const mcpServers = this.#version.servers(this.#request, agent);
    if (typeof mcpServers === "string") return this.#fail(mcpServers);
    const place = { cwd: this.#host.cwd, mcpServers };
    if (sessionId === undefined) {
      this.#ask("session", "session/new", place);
      return [{ type: "alive" }];
    }
    const method = this.#version.continuing(agent);
    if (method === undefined) return this.#fail("it can't continue a session");
    this.#sessionId = sessionId;
    this.#ask("session", method, { sessionId, ...place });
    return [{ type: "alive" }];
  }

  #opened(session: Untrusted): AgentSignal[] {
    const sessionId = this.#request.sessionId ?? asText(session["sessionId"]);
    if (sessionId === undefined) return this.#fail("it made a session without an id");
    this.#sessionId = sessionId;
    const { model } = this.#request;
    const signal: AgentSignal = { type: "session", sessionId, ...(model !== undefined && { model }) };
    if (model === undefined) return [signal, ...(this.#passHistory(session) ?? this.#prompt())];
    const choice = chooseModel(session, sessionId, model);
    if (typeof choice === "string") return [signal, ...this.#fail(choice)];
    this.#ask("model", choice.method, choice.params);
    return [signal];
  }

  /**
   * Some agents say that a session is loaded, and repeat what was said in it only then. It is over when they answer another request: to stay
   * in the mode in which they are.
   */
  #passHistory(session: Untrusted): AgentSignal[] | undefined {
    const modeId = asText(asRecord(session["modes"])?.["currentModeId"]);
    if (this.#request.sessionId === undefined || modeId === undefined) return undefined;
    this.#ask("history", "session/set_mode", { sessionId: this.#sessionId, modeId });
    return [{ type: "alive" }];
  }

  #prompt(): AgentSignal[] {
    const { prompt, systemPrompt } = this.#request;
    this.#costBefore = this.#request.sessionId === undefined ? 0 : this.#updates.costUsd;
    const text = systemPrompt === undefined ? prompt : `${systemPrompt}\n\n${prompt}`;
    this.#ask("prompt", "session/prompt", { sessionId: this.#sessionId, prompt: [{ type: "text", text }] });
    return [{ type: "alive" }];
  }

  #done(result: Untrusted): AgentSignal[] {
    const signals = [...this.#updates.flush(), ...this.#used(asRecord(result["usage"]))];
    this.#step = "over";
    return [...signals, { type: "result", result: toVerdict(result["stopReason"], this.#updates.said) }];
  }

  /** What this prompt has cost; not known when it isn't known what the session had cost before. */
  get #spent(): number | undefined {
    const all = this.#updates.costUsd;
    return all === undefined || this.#costBefore === undefined ? undefined : Math.max(0, all - this.#costBefore);
  }

  /** The tokens of a session that was continued may be of all its prompts, so they are not counted. */
  #used(reported?: Untrusted): AgentSignal[] {
    const found = this.#request.sessionId === undefined ? toUsage(reported) : undefined;
    const usage = found === undefined || this.#isOfLastTurn(found) ? undefined : found;
    const costUsd = this.#spent;
    return usage === undefined && costUsd === undefined ? [] : [{ type: "usage", ...defined({ usage, costUsd }) }];
  }

  /** Every turn sends the context again: only several that used more than one context are known to be counted all. */
  #isOfLastTurn({ input, cacheRead, cacheWrite }: TokenUsage): boolean {
    const { turns, context = Number.POSITIVE_INFINITY } = this.#updates;
    return turns > 1 && input + cacheRead + cacheWrite <= context;
  }

  /** Agents put the status of the failed request into the code of the error, or into its data. */
  #refused(error: Untrusted): AgentSignal[] {
    const data = asRecord(error["data"]) ?? {};
    const codes = [error["code"], data["statusCode"], data["status"], data["code"]].map(asCount);
    const known = codes.map((code) => failureOfStatus(code)).find((failure) => failure !== undefined);
    const said = [asText(error["message"]) ?? "it refused and did not say why", asText(data["details"])];
    const message = said.filter((text) => text !== undefined).join(": ");
    const isLogin = error["code"] === RPC_CODES.authRequired;
    return this.#fail(message, isLogin ? "unauthenticated" : (known ?? "agent_error"));
  }

  #fail(text: string, failure: AgentFailure = "agent_error"): AgentSignal[] {
    this.#step = "over";
    return [{ type: "result", result: { isError: true, text, failure } }];
  }
}

function toVerdict(stopReason: unknown, text: string): AgentVerdict {
  const terminalReason = asText(stopReason) ?? "unknown";
  switch (terminalReason) {
    case "end_turn":
      return { isError: false, text, terminalReason };
    case "max_turn_requests":
      return { isError: true, text, limit: "turns", terminalReason };
    case "refusal":
      return { isError: true, text: text || "it refused", failure: "refused", terminalReason };
    default:
      return { isError: true, text: text || `it stopped: ${terminalReason}`, failure: "agent_error", terminalReason };
  }
}

/** Whether the input includes what came from the cache is seen from the sum; undefined when the numbers don't add up. */
function toUsage(usage: Untrusted | undefined): TokenUsage | undefined {
  if (usage === undefined) return undefined;
  const count = (name: string): number => asCount(usage[name]) ?? 0;
  const [all, output] = [count("inputTokens"), count("outputTokens")];
  const [cacheRead, cacheWrite] = [count("cachedReadTokens"), count("cachedWriteTokens")];
  const cached = cacheRead + cacheWrite;
  const others = count("totalTokens") - output - all;
  const isWithin = cached > 0 && (others === 0 || others === count("thoughtTokens")) && all >= cached;
  return { input: isWithin ? all - cached : all, output, cacheRead, cacheWrite };
}
