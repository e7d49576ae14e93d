import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import type { HarnessOptions, RunEvent, RunReport } from "../harness.js";
import { truncate } from "../util/sanitize.js";

/** Runs of a client that are over and still known. */
const MOST_ENDED = 100;
/** Lines about what a run did last. */
const MOST_LINES = 10;
const LONGEST_LINE = 300;

/** What a model asks for when it starts a run. */
export interface WantedRun {
  readonly blueprint: string;
  readonly intent: string;
  readonly inputs?: Readonly<Record<string, string | number | boolean>>;
}

/** What the user lets a model run: what `runHarness` takes, but for what the model says. */
export interface RunOffer
  extends Omit<
    HarnessOptions,
    keyof WantedRun | "runId" | "reporter" | "signal" | "push" | "pushOn" | "draft" | "prWith"
  > {
  /** Names of the blueprints that the model may run. Default: every blueprint that has a name. */
  blueprints?: readonly string[];
  /** Runs of one client at the same time. Default 4. */
  maxRuns?: number;
}

/** A run of a client. */
export interface OwnRun {
  readonly id: string;
  readonly blueprint: string;
  readonly startedAt: string;
  /** What its nodes are doing or have done, in their order. */
  readonly nodes: Map<string, string>;
  /** What it did last, newest last. */
  readonly lines: readonly string[];
  /** Undefined while it runs. */
  readonly report: RunReport | undefined;
  /** Why it ended without a report. */
  readonly failure: SandboxError | undefined;
}

/** The runs of all clients. Each belongs to its client, and no other can name it. */
export class OwnedRuns {
  /** The blueprints that may be run. */
  readonly blueprints: readonly string[];
  readonly #offer: Omit<RunOffer, "blueprints" | "maxRuns">;
  readonly #most: number;
  readonly #byOwner = new Map<string, Map<string, FollowedRun>>();
  #isClosing = false;

  constructor({ blueprints, maxRuns, ...offer }: RunOffer & { blueprints: readonly string[]; maxRuns: number }) {
    this.blueprints = blueprints;
    this.#offer = offer;
    this.#most = maxRuns;
  }

  /** Starts a run. Resolves when its plan is made, or at `until`; what can be refused is refused before. */
  async start(owner: string, wanted: WantedRun, until: number): Promise<OwnRun> {
    if (this.#isClosing) throw new SandboxError("closed", "The server is being shut down");
    this.#assertOffered(wanted.blueprint);
    const runs = this.#of(owner);
    if ([...runs.values()].filter((run) => run.isRunning).length >= this.#most) {
      throw new SandboxError("limit_exceeded", `${this.#most} of your runs are going on, which is the most`, {
        retryable: true,
        hint: "wait for one of them with run_status, or end one with run_cancel",
      });
    }
    const run = new FollowedRun({ ...this.#offer, ...wanted });
    runs.set(run.id, run);
    await Promise.race([run.begun, waitUntil(until)]);
    if (run.failure === undefined) return run;
    runs.delete(run.id);
    throw run.failure;
  }

  /** The run of that id, if it is the client's. */
  byId(owner: string, id: string): OwnRun {
    return this.#find(owner, id);
  }

  /** The runs of a client, the newest last. */
  list(owner: string): OwnRun[] {
    return [...(this.#byOwner.get(owner)?.values() ?? [])];
  }

  /** Waits for the run to begin or end a node, or to end; not longer than `until`. */
  async next(owner: string, id: string, until: number, signal: AbortSignal): Promise<void> {
    const run = this.#find(owner, id);
    if (run.isRunning) await Promise.race([run.next(), waitUntil(until, signal)]);
  }

  /** Ends a run cleanly: what it has done is kept. Resolves when it has ended, or at `until`. */
  async cancel(owner: string, id: string, until: number): Promise<OwnRun> {
    const run = this.#find(owner, id);
    run.stop();
    await Promise.race([run.over, waitUntil(until)]);
    return run;
  }

  /** Ends the runs of one client. */
  async closeOf(owner: string): Promise<void> {
    const runs = [...(this.#byOwner.get(owner)?.values() ?? [])];
    this.#byOwner.delete(owner);
    for (const run of runs) run.stop();
    await Promise.all(runs.map(({ over }) => over));
  }

  /** Ends all runs. Starts no more. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.all([...this.#byOwner.keys()].map((owner) => this.closeOf(owner)));
  }

  #assertOffered(blueprint: string): void {
    if (this.blueprints.includes(blueprint)) return;
    throw new SandboxError("permission_denied", `The user does not offer the blueprint "${blueprint.slice(0, 100)}"`, {
      hint: `choose one of ${this.blueprints.join(", ")}`,
    });
  }

  #find(owner: string, id: string): FollowedRun {
    const run = this.#byOwner.get(owner)?.get(id);
    if (run !== undefined) return run;
    throw new SandboxError("not_found", `There is no run "${id.slice(0, 100)}" of yours`, {
      hint: "run_status without run_id shows yours; run_start starts one",
    });
  }

  #of(owner: string): Map<string, FollowedRun> {
    const runs = this.#byOwner.get(owner) ?? new Map<string, FollowedRun>();
    const ended = [...runs.values()].filter((run) => !run.isRunning);
    for (const { id } of ended.slice(0, Math.max(0, ended.length - MOST_ENDED))) runs.delete(id);
    this.#byOwner.set(owner, runs);
    return runs;
  }
}

class FollowedRun implements OwnRun {
  readonly id = `mcp-${randomUUID().slice(0, 8)}`;
  readonly blueprint: string;
  readonly startedAt = new Date().toISOString();
  readonly nodes = new Map<string, string>();
  readonly lines: string[] = [];
  /** Resolves when it has ended, in whatever way. */
  readonly over: Promise<void>;
  /** Resolves once its plan is made, or it has ended. */
  readonly begun: Promise<void>;
  report: RunReport | undefined;
  failure: SandboxError | undefined;
  readonly #stopping = new AbortController();
  readonly #waiting = new Set<() => void>();

  constructor(options: Omit<HarnessOptions, "runId" | "reporter" | "signal">) {
    this.blueprint = String(options.blueprint);
    this.begun = this.next();
    this.over = this.#run(options);
  }

  get isRunning(): boolean {
    return this.report === undefined && this.failure === undefined;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves when it begins or ends a node, or has ended. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  async #run(options: Omit<HarnessOptions, "runId" | "reporter" | "signal">): Promise<void> {
    try {
      const { runHarness } = await import("../harness.js");
      const reporter = { event: (event: RunEvent) => this.#take(event) };
      this.report = await runHarness({ ...options, runId: this.id, reporter, signal: this.#stopping.signal });
    } catch (error) {
      this.failure = toSandboxError(error);
    }
    this.#wake();
  }

  #take(event: RunEvent): void {
    const line = lineOf(event);
    if (line !== undefined) this.lines.splice(0, Math.max(0, this.lines.push(line) - MOST_LINES));
    if (event.type === "run.started") for (const { id } of event.nodes) this.nodes.set(id, "pending");
    else if (event.type === "node.started") this.nodes.set(event.nodeId, "running");
    else if (event.type === "node.skipped") this.nodes.set(event.nodeId, "skipped");
    else if (event.type === "node.finished") this.nodes.set(event.nodeId, event.result.status);
    else return;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

/** What an event says to somebody who follows the run; undefined: nothing. */
function lineOf(event: RunEvent): string | undefined {
  switch (event.type) {
    case "sandbox.ready":
      return `its sandbox is open (${event.backend})`;
    case "node.started":
      return `${event.nodeId} (${event.kind}) started${event.attempt > 1 ? `, attempt ${event.attempt}` : ""}`;
    case "node.finished":
      return `${event.nodeId} ended: ${event.result.status}`;
    case "agent.message":
      return `${event.nodeId}: ${truncate(event.text, LONGEST_LINE)}`;
    case "agent.tool_call":
      return `${event.nodeId} calls ${event.tool}: ${truncate(event.summary, LONGEST_LINE)}`;
    case "gate.check":
      return `check ${event.check.id}: ${event.check.status}`;
    case "retry.scheduled":
      return `${event.nodeId} is tried again: ${event.reason}`;
    case "limit.hit":
      return `the limit ${event.limit} is reached`;
    case "warning":
      return `warning: ${event.message}`;
    default:
      return undefined;
  }
}

async function waitUntil(until: number, signal?: AbortSignal): Promise<void> {
  const options = { ref: false, ...(signal !== undefined && { signal }) };
  await delay(Math.max(0, until - performance.now()), undefined, options).catch(() => undefined);
}
