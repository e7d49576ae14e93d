import type { Container } from "@dagger.io/dagger";
import { SandboxError } from "../../../../contracts/errors.js";
import type { GuestChannel } from "../../guest.js";
import type { Reachable } from "./base.js";
import { daggerError } from "./failure.js";
import { cancellable } from "./fetch.js";
import { AS_FIRST_PROCESS, CALL_NUMBER, callingCommand, newNumber, receiveGuest, START_LIMIT } from "./guest-call.js";
import { flattened, layersOf, MAX_OWN_LAYERS, withLayers } from "./layer-count.js";
import type { Session } from "./session.js";

/** The right to use a step's guest. */
export interface Lease {
  readonly channel: GuestChannel;
  /** Resolves once the changes are in the graph. With `isPatient` false it does not wait; a failure then shows in the next call. */
  release(isPatient?: boolean): Promise<void>;
}

/** One running command of the engine: the guest in it, and its users. */
interface LiveStep {
  readonly channel: GuestChannel;
  /** What the graph contains once the guest has ended. */
  readonly result: Promise<Container>;
  /** Whether it reaches services that the sandbox must not be bound to permanently. */
  readonly isBound: boolean;
  users: number;
  isChanged: boolean;
  /** Ends it when nobody has used it for a while. */
  timer: NodeJS.Timeout | undefined;
}

/** What all steps of a sandbox have in common. */
export interface StepOptions {
  readonly workDir: string;
  /** Names of variables whose values only the engine knows. */
  readonly secrets: readonly string[];
  /** How long an unused step waits for its next user, in milliseconds. */
  readonly linger: number;
  /** What a step can reach by a host name, in addition to the bindings of its container. */
  readonly services: ReadonlyMap<string, Reachable>;
}

/**
 * The state of one sandbox: a container of an immutable graph that each step replaces.
 *
 * A step is one `withExec` of the guest, which calls this process and serves its requests until nobody needs it. It then ends with 0, whatever the
 * commands ended with, so that the engine keeps their changes: an engine discards the state of a command that ends with a signal or with 128, as
 * git does. Work that overlaps, or follows closely, shares a step.
 */
export class Steps {
  readonly #session: Session;
  readonly #options: StepOptions;
  readonly #ending = new AbortController();
  #current: Container;
  #live: Promise<LiveStep> | undefined;
  #closing: Promise<unknown> | undefined;
  /** Why a step is not in the graph. Continuing from the one before it would lose acknowledged changes. */
  #lost: SandboxError | undefined;

  constructor(session: Session, base: Container, options: StepOptions) {
    this.#session = session;
    this.#current = base;
    this.#options = options;
  }

  /** The container as the last finished step left it. */
  get current(): Container {
    return this.#current;
  }

  /** Whether nothing runs; `current` then has all changes. */
  async isIdle(): Promise<boolean> {
    const step = await this.#live?.catch(() => undefined);
    if (step?.users === 0) await this.settle();
    while (this.#closing !== undefined) await this.#closing;
    return this.#live === undefined;
  }

  /** The container if nothing runs; undefined while something does. Throws if a step is lost. */
  async settled(): Promise<Container | undefined> {
    const isIdle = await this.isIdle();
    if (this.#lost !== undefined) throw this.#lost;
    return isIdle ? this.#current : undefined;
  }

  /** Whether a step is not in the graph, so that the only option is to restore. */
  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /** Continues from another container, even after a loss; everything that ran must have ended. */
  replace(container: Container): void {
    this.#current = container;
    this.#lost = undefined;
  }

  /** Returns the channel to a guest, to be released once. Work that only reads does not change the graph. */
  async acquire(isChange: boolean): Promise<Lease> {
    while (this.#closing !== undefined) await this.#closing;
    this.#ending.signal.throwIfAborted();
    if (this.#lost !== undefined) throw this.#lost;
    this.#live ??= this.#start();
    const opening = this.#live;
    let step: LiveStep;
    try {
      step = await opening;
    } catch (error) {
      if (this.#live === opening) this.#live = undefined;
      throw error;
    }
    // It may have been closed after its last user.
    if (this.#live !== opening) return await this.acquire(isChange);
    clearTimeout(step.timer);
    step.users += 1;
    step.isChanged ||= isChange;
    let isReleased = false;
    return {
      channel: step.channel,
      release: async (isPatient = true) => {
        if (isReleased) return;
        isReleased = true;
        step.users -= 1;
        if (step.users > 0 || this.#live !== opening) return;
        if (this.#options.linger > 0) {
          step.timer = setTimeout(() => void this.#finish(step).catch(() => undefined), this.#options.linger);
          step.timer.unref();
          return;
        }
        const finished = this.#finish(step);
        if (isPatient) await finished;
        else finished.catch(() => undefined);
      },
    };
  }

  /** The channel to the guest of what runs; undefined if nothing does. */
  async acquireRunning(): Promise<Lease | undefined> {
    return this.#live === undefined ? undefined : await this.acquire(false);
  }

  /** Runs work with a guest. */
  async use<T>(isChange: boolean, work: (channel: GuestChannel) => Promise<T>): Promise<T> {
    const { channel, release } = await this.acquire(isChange);
    let outcome: T;
    try {
      outcome = await work(channel);
    } catch (error) {
      await release().catch(() => undefined);
      throw error;
    }
    await release();
    return outcome;
  }

  /** Ends everything that runs, and keeps its changes so far. */
  async settle(): Promise<void> {
    const step = await this.#live?.catch(() => undefined);
    if (step !== undefined && this.#live !== undefined) await this.#finish(step);
    await this.#closing;
  }

  /** Ends everything that runs; nothing starts any more. */
  async close(): Promise<void> {
    const opening = this.#live;
    this.#ending.abort(new SandboxError("closed", "the sandbox is closed"));
    const step = await opening?.catch(() => undefined);
    clearTimeout(step?.timer);
    step?.channel.close();
    await step?.result.catch(() => undefined);
    await this.#closing;
  }

  async #start(): Promise<LiveStep> {
    const number = newNumber();
    const { sdk } = this.#session;
    const { workDir, secrets, services } = this.#options;
    const cancel = new AbortController();
    const signal = AbortSignal.any([cancel.signal, this.#ending.signal]);
    const receiving = receiveGuest(this.#session, number, signal);
    receiving.catch(() => undefined);
    const args = callingCommand(this.#session, workDir, secrets);
    // The number makes the step unique: an engine does not run the same step twice.
    let container = this.#current.withEnvVariable(CALL_NUMBER, number);
    for (const [alias, { service }] of services) container = container.withServiceBinding(alias, service);
    const isBound = services.size > 0;
    const how = { expect: sdk.ReturnType.Any, ...AS_FIRST_PROCESS };
    const result = cancellable(signal, () => container.withExec(args, how).sync());
    result.catch(() => undefined);
    let hasStarted = false;
    const early = result.then(
      async (ended): Promise<never> => {
        const said = hasStarted ? "" : await ended.stderr().catch(() => "");
        throw new SandboxError("unavailable", `A step of the sandbox ended before it started: ${said.trim()}`);
      },
      (error: unknown) => {
        throw daggerError(error, "The Dagger engine could not run a step of the sandbox");
      },
    );
    early.catch(() => undefined);
    try {
      const channel = await Promise.race([receiving, early]);
      hasStarted = true;
      const step: LiveStep = { channel, result, isBound, users: 0, isChanged: false, timer: undefined };
      channel.onClosed = () => this.#lose(step);
      return step;
    } catch (error) {
      cancel.abort();
      throw this.#ending.signal.aborted ? this.#ending.signal.reason : timedOut(error);
    }
  }

  /** The engine or the guest was lost in the middle of a step. */
  #lose(step: LiveStep): void {
    if (this.#closing !== undefined || this.#live === undefined) return;
    if (step.isChanged) this.#lost = lostError();
    this.#live = undefined;
    this.#closing = step.result
      .catch(() => undefined)
      .finally(() => {
        this.#closing = undefined;
      });
  }

  /** Lets the guest end, and continues from the resulting container. */
  #finish(step: LiveStep): Promise<void> {
    clearTimeout(step.timer);
    step.channel.onClosed = undefined;
    this.#live = undefined;
    const finished = (async () => {
      step.channel.close();
      try {
        const container = await step.result;
        if (step.isChanged) this.#current = await this.#successor(container, step.isBound);
      } catch (error) {
        if (!step.isChanged) return;
        this.#lost = lostError(error);
        throw this.#lost;
      }
    })();
    this.#closing = finished
      .catch(() => undefined)
      .finally(() => {
        this.#closing = undefined;
      });
    return finished;
  }

  /** What the sandbox continues from after a step that changed something. */
  async #successor(container: Container, isBound: boolean): Promise<Container> {
    const layers = layersOf(this.#current) + 1;
    // An engine would restart a service that has ended: only the files are carried over.
    const own = isBound ? await this.#current.withRootfs(container.rootfs()).sync() : container;
    if (layers < MAX_OWN_LAYERS) return withLayers(own, layers);
    try {
      return await flattened(this.#session, own).sync();
    } catch {
      // The step itself is in the graph. There is still room for more, and the next one tries again.
      return withLayers(own, layers);
    }
  }
}

function lostError(cause?: unknown): SandboxError {
  return new SandboxError("backend_lost", "The Dagger engine lost a step of the sandbox", {
    backend: "dagger",
    cause,
    hint: "restore a snapshot, or open a new sandbox",
  });
}

function timedOut(error: unknown): unknown {
  if ((error as Error | undefined)?.name !== "TimeoutError") return error;
  return new SandboxError("unavailable", `A step of the sandbox did not connect within ${START_LIMIT} ms`, {
    backend: "dagger",
    cause: error,
    hint: "containers of the engine must be able to reach this machine through the session (host services)",
  });
}
