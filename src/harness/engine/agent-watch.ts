import type { AgentReport, AgentSignal, AgentVerdict, LimitHit, TokenUsage } from "../types.js";
import type { EngineState } from "./engine-state.js";

/** Bounds of one run of an agent: its own and what is left of the run's. */
export interface AgentBounds {
  readonly wall: number | undefined;
  readonly idle: number;
  readonly costUsd: number | undefined;
  readonly turns: number | undefined;
}

/** Milliseconds that an agent may take to end after its result. */
const RESULT_GRACE = 10_000;

/** What comes from the sandbox is bounded before it gets into a report. */
const MAX_NAME = 200;

/** Why the harness ended an agent. */
export type StopCause = LimitHit["limit"] | "cancelled" | "finished";

/** Keeps count of what an agent does and ends it at its bounds. */
export class AgentWatch {
  readonly report: AgentReport;
  verdict: AgentVerdict | undefined;
  cause: StopCause | undefined;
  turns = 0;
  usage: TokenUsage | undefined;
  costUsd: number | null = null;
  readonly #bounds: AgentBounds;
  readonly #state: EngineState;
  readonly #stop: (grace?: number) => void;
  readonly #wall: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  #leaving: NodeJS.Timeout | undefined;
  #isDone = false;
  /** Whether there was an answer of the model since the last result. */
  #hasAnswered = false;
  #isWarned = false;

  constructor(name: string, bounds: AgentBounds, state: EngineState, stop: (grace?: number) => void) {
    this.report = { name, costUsd: null };
    this.#bounds = bounds;
    this.#state = state;
    this.#stop = stop;
    if (bounds.wall !== undefined) this.#wall = setTimeout(() => this.#end("wall"), bounds.wall);
    state.signal.addEventListener("abort", this.#abort, { once: true });
    this.#rest();
    if (state.signal.aborted) this.#abort();
  }

  readonly #abort = (): void => this.#end(this.#state.stopped === "cancelled" ? "cancelled" : "wall");

  /** Whether it has given a result, and has not begun to work on. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Takes what the agent said; a line that means nothing is no sign of life. */
  take(signals: readonly AgentSignal[]): void {
    if (signals.length > 0) this.#rest();
    for (const signal of signals) this.#note(signal);
    const { costUsd, turns } = this.#bounds;
    if (costUsd !== undefined && (this.costUsd ?? 0) > costUsd) this.#end("cost");
    if (turns !== undefined && this.turns > turns) this.#end("turns");
  }

  /** The limit that was reached, for the report. */
  limitHit(limit: LimitHit["limit"], nodeId: string): LimitHit {
    const { wall, idle, costUsd, turns } = this.#bounds;
    const allowed = { wall: wall ?? this.#state.limits.wall, idle, cost: costUsd, turns }[limit] ?? 0;
    const used = { wall: undefined, idle: undefined, cost: this.costUsd ?? undefined, turns: this.turns }[limit];
    return { limit, nodeId, allowed, ...(used !== undefined && { used }) };
  }

  end(): void {
    for (const timer of [this.#wall, this.#idle, this.#leaving]) clearTimeout(timer);
    this.#state.signal.removeEventListener("abort", this.#abort);
  }

  #note(signal: AgentSignal): void {
    switch (signal.type) {
      case "session":
        this.report.sessionId = this.#state.hide(signal.sessionId, MAX_NAME);
        if (signal.model !== undefined) this.report.model = this.#state.hide(signal.model, MAX_NAME);
        break;
      case "turn":
        this.turns += 1;
        this.#hasAnswered = true;
        this.#workOn();
        break;
      case "alive":
        this.#workOn();
        break;
      case "usage":
        if (signal.usage !== undefined) this.usage = signal.usage;
        if (signal.costUsd !== undefined) this.costUsd = signal.costUsd;
        if (signal.session !== undefined) this.report.session = signal.session;
        if (signal.isUnpriced === true) this.#warnUnpriced();
        break;
      case "result":
        this.verdict = signal.result;
        this.#isDone = true;
        this.#hasAnswered = false;
        clearTimeout(this.#leaving);
        this.#leaving = setTimeout(() => this.#end("finished", 0), RESULT_GRACE);
        break;
      default:
        break;
    }
  }

  #warnUnpriced(): void {
    const { costUsd } = this.#bounds;
    if (costUsd === undefined || this.#isWarned) return;
    this.#isWarned = true;
    const { name } = this.report;
    const why = `${name} knows no price of its model, so the limit of $${costUsd} does not end it`;
    void this.#state.warn(why, this.#state.nodeId);
  }

  /** Some agents work on after a result: on what ended in the background. */
  #workOn(): void {
    this.#isDone = false;
    clearTimeout(this.#leaving);
  }

  #rest(): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#end("idle"), this.#bounds.idle);
  }

  #end(cause: StopCause, grace?: number): void {
    if (this.cause !== undefined) return;
    // What comes after the result does not change it; nor does work that was only announced.
    const isOver = this.#isDone || (cause === "idle" && this.verdict !== undefined && !this.#hasAnswered);
    this.cause = isOver && cause !== "cancelled" ? "finished" : cause;
    this.#stop(grace);
  }
}
