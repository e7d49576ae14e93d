import type { Sandbox } from "../../sandbox/types.js";
import { defined } from "../../util/defined.js";
import { hideable, type RedactOptions, redact } from "../../util/redact.js";
import { truncate } from "../../util/sanitize.js";
import { toOutputEvent } from "../store.js";
import type {
  AgentChoice,
  AgentReport,
  Blueprint,
  EngineOptions,
  EventSink,
  LimitHit,
  NodeOutput,
  RunContext,
  RunEventBody,
  RunLimits,
  SessionTotals,
  TokenUsage,
} from "../types.js";

/** The part of a limit at which a warning is given. */
const WARN_AT = 0.8;

/** What all parts of the engine share during a run. */
export class EngineState {
  readonly sandbox: Sandbox;
  readonly context: RunContext;
  readonly limits: RunLimits;
  /** The variables of the blueprint that every command in the sandbox has. */
  readonly sandboxEnv: Readonly<Record<string, string>>;
  /** Those, and the ones that the sandbox was opened with besides: no report has these. */
  readonly allSandboxEnv: Readonly<Record<string, string>>;
  /** Paths below HOME of the files that the blueprint declares. */
  readonly home: ReadonlySet<string>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly choice: AgentChoice;
  readonly hidden: RedactOptions;
  readonly network: EngineOptions["network"];
  readonly startedAt: number = performance.now();
  /** Milliseconds that the nodes had at the start. */
  readonly wallLeft: number;
  readonly usage: TokenUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  readonly unpriced: string[] = [];
  readonly limitsHit: LimitHit[] = [];
  readonly warnings: string[] = [];
  readonly versions: Map<string, string> = new Map();
  /** What the sessions of agents have used so far, by their ids. */
  readonly sessions: Map<string, SessionTotals> = new Map();
  /** What the agents of nodes have used so far, in all tries. */
  readonly #spent: Map<string, { costUsd: number; turns: number }> = new Map();
  /** Nodes of an earlier process whose sessions are gone. */
  readonly lostSessions: ReadonlySet<string>;
  costUsd: number | null = null;
  turns = 0;
  sandboxLost = false;
  /** The node that runs. */
  nodeId = "";
  readonly #onEvent: EventSink;
  readonly #onOutput: EngineOptions["onOutput"];
  readonly #stop = new AbortController();
  readonly #cancelled: AbortSignal | undefined;
  readonly #timers: NodeJS.Timeout[];
  readonly #warned: Set<LimitHit["limit"]> = new Set();
  #queue: Promise<void> = Promise.resolve();

  constructor(
    limits: RunLimits,
    options: EngineOptions,
    { env = {}, home = {} }: Partial<Pick<Blueprint["sandbox"], "env" | "home">> = {},
  ) {
    this.sandboxEnv = env;
    this.allSandboxEnv = { ...env, ...options.sandboxEnv };
    this.home = new Set(Object.keys(home));
    this.sandbox = options.sandbox;
    this.context = options.context;
    this.limits = limits;
    this.secrets = options.secrets ?? {};
    const { agents, agent, model } = options;
    this.choice = defined({ agents, agent, model });
    this.hidden = { secrets: hideable(Object.values(this.secrets)) };
    this.network = options.network;
    this.lostSessions = new Set(options.lostSessions);
    this.#onEvent = options.onEvent;
    this.#onOutput = options.onOutput;
    this.#cancelled = options.signal;
    if (options.signal?.aborted) this.#stop.abort();
    options.signal?.addEventListener("abort", this.#cancel, { once: true });
    this.wallLeft = Math.min(options.wallLeft ?? limits.wall, limits.wall);
    if (this.wallLeft <= 0) this.#stop.abort();
    const near = Math.max(0, this.wallLeft - limits.wall * (1 - WARN_AT));
    this.#timers = [
      setTimeout(() => this.#stop.abort(), this.wallLeft),
      setTimeout(() => this.#warnOf("wall", limits.wall, Math.ceil(limits.wall * WARN_AT)), near),
    ];
  }

  readonly #cancel = (): void => this.#stop.abort();

  /** Aborted when the run is cancelled or its time is over. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Why the run must end now; undefined when it need not. */
  get stopped(): "cancelled" | "wall" | undefined {
    if (this.#cancelled?.aborted) return "cancelled";
    return this.signal.aborted ? "wall" : undefined;
  }

  /** Milliseconds since the run started. */
  get elapsed(): number {
    return performance.now() - this.startedAt;
  }

  /** Passes an event on, in order. A sink that fails is a warning: the run continues. */
  emit(event: RunEventBody): Promise<void> {
    return this.#inOrder(() => this.#onEvent(event));
  }

  /** Passes on what a node printed, as bytes where those are taken, else as an event. */
  emitOutput(output: NodeOutput): Promise<void> {
    const onOutput = this.#onOutput;
    if (onOutput !== undefined) return this.#inOrder(() => onOutput(output));
    return this.emit(toOutputEvent(output));
  }

  #inOrder(emit: () => void | Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(async () => {
      try {
        await emit();
      } catch (error) {
        const message = `an event could not be written: ${error instanceof Error ? error.message : String(error)}`;
        if (!this.warnings.includes(message)) this.warnings.push(message);
      }
    });
    return this.#queue;
  }

  /** Notes something that went wrong and does not end the run. */
  async warn(message: string, nodeId?: string): Promise<void> {
    const safe = this.hide(message);
    this.warnings.push(safe);
    await this.emit({ type: "warning", message: safe, ...(nodeId !== undefined && { nodeId }) });
  }

  /** Notes that a limit was reached. */
  async hit(limit: LimitHit): Promise<void> {
    this.limitsHit.push(limit);
    await this.emit({ type: "limit.hit", ...limit });
  }

  /** Adds what an agent used to that of the run. */
  account(nodeId: string, { usage, costUsd, turns = 0, sessionId, session }: AgentReport): void {
    if (sessionId !== undefined && session !== undefined) this.sessions.set(sessionId, session);
    const spent = this.spentBy(nodeId);
    this.#spent.set(nodeId, { costUsd: spent.costUsd + (costUsd ?? 0), turns: spent.turns + turns });
    this.turns += turns;
    for (const key of ["input", "output", "cacheRead", "cacheWrite"] as const) this.usage[key] += usage?.[key] ?? 0;
    if (costUsd === null) this.noteUnpriced(nodeId);
    else this.costUsd = (this.costUsd ?? 0) + costUsd;
    this.#warnOf("cost", this.limits.costUsd, this.costUsd ?? 0);
    this.#warnOf("turns", this.limits.turns, this.turns);
  }

  /** What the agent of a node has used so far, in all tries. */
  spentBy(nodeId: string): { readonly costUsd: number; readonly turns: number } {
    return this.#spent.get(nodeId) ?? { costUsd: 0, turns: 0 };
  }

  /** Notes that an agent of a node did not say what it cost. */
  noteUnpriced(nodeId: string): void {
    if (!this.unpriced.includes(nodeId)) this.unpriced.push(nodeId);
  }

  /** Warns once for each limit that is near. */
  #warnOf(limit: LimitHit["limit"], allowed: number | undefined, used: number): void {
    if (allowed === undefined || used < allowed * WARN_AT || this.#warned.has(limit)) return;
    this.#warned.add(limit);
    void this.emit({ type: "limit.warning", limit, nodeId: this.nodeId, allowed, used });
  }

  /** Text without secrets, cut to a bound after that. */
  hide(text: string, maxBytes = 8_000): string {
    return truncate(redact(text, this.hidden), maxBytes);
  }

  /** Removes timers and listeners. */
  end(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#cancelled?.removeEventListener("abort", this.#cancel);
  }
}
