import type { Service } from "@dagger.io/dagger";
import { SandboxError } from "../../../../contracts/errors.js";
import { errorFor, GuestFailure, startCommand } from "../../guest.js";
import type { DriverProcess, StartSpec } from "../../types.js";
import type { Reachable } from "./base.js";
import { daggerError } from "./failure.js";
import { cancellable } from "./fetch.js";
import { AS_FIRST_PROCESS, CALL_NUMBER, callingCommand, newNumber, receiveGuest } from "./guest-call.js";
import { endingAs } from "./process-end.js";
import type { Session } from "./session.js";
import type { Steps } from "./steps.js";

/** How long the ports of a service may take to answer, in milliseconds: an engine itself would wait for fifteen minutes. */
const HEALTHY_WITHIN = 30_000;
const SHOWN = 1_000;

/** What all services of a sandbox have in common. */
export interface ServiceOptions {
  readonly workDir: string;
  readonly secrets: readonly string[];
  /** Host names that are already in use. */
  readonly taken: ReadonlySet<string>;
}

/**
 * The services that `spawn` started. Each is a container of its own next to the sandbox, with the files as they were, and later steps are bound to
 * it by its host name. The guest runs in it and provides output, input, signals and the exit, as for any process; the engine alone would provide
 * none of them before the end.
 */
export class SpawnedServices {
  readonly #session: Session;
  readonly #options: ServiceOptions;
  readonly #running = new Map<string, Reachable>();
  readonly #names = new Set<string>();

  constructor(session: Session, options: ServiceOptions) {
    this.#session = session;
    this.#options = options;
  }

  /** The running services by host name. */
  get running(): ReadonlyMap<string, Reachable> {
    return this.#running;
  }

  /** Starts a service; resolves once all its ports answer. */
  async start(
    steps: Steps,
    spec: StartSpec & { readonly service: NonNullable<StartSpec["service"]> },
    cwd: string,
  ): Promise<DriverProcess> {
    const { hostname } = spec.service;
    if (this.#names.has(hostname) || this.#options.taken.has(hostname)) {
      throw new SandboxError("conflict", `The host name "${hostname}" is already taken`, { retryable: false });
    }
    this.#names.add(hostname);
    try {
      return await this.#start(steps, spec, cwd);
    } catch (error) {
      this.#names.delete(hostname);
      throw error;
    }
  }

  async #start(
    steps: Steps,
    { service: { hostname, ports }, ...spec }: Parameters<SpawnedServices["start"]>[1],
    cwd: string,
  ): Promise<DriverProcess> {
    const from = await steps.settled();
    if (from === undefined) {
      throw new SandboxError("conflict", `The service "${hostname}" can't start from files that are in use`, {
        hint: "start it before other processes, or start those as services too",
      });
    }
    const { workDir, secrets } = this.#options;
    const number = newNumber();
    const cancel = new AbortController();
    const receiving = receiveGuest(this.#session, number, cancel.signal);
    let container = from.withEnvVariable(CALL_NUMBER, number);
    for (const [alias, { service }] of this.#running) container = container.withServiceBinding(alias, service);
    for (const port of ports) container = container.withExposedPort(port);
    const args = callingCommand(this.#session, workDir, secrets);
    const service = container.asService({ args, ...AS_FIRST_PROCESS });
    const starting = cancellable(cancel.signal, () => service.start()).catch((error: unknown) => {
      throw daggerError(error, `The service "${hostname}" could not be started`);
    });
    for (const each of [receiving, starting]) each.catch(() => undefined);
    try {
      // Without ports to wait for, it may be ready before its guest has called.
      const channel = await Promise.race([receiving, starting.then(() => receiving)]);
      const process = await startCommand(channel, spec, cwd);
      const ended = process.wait().finally(() => channel.close());
      ended.catch(() => undefined);
      const said = spec.combined === true ? process.stdout : process.stderr;
      const started = await this.#healthy(hostname, process, said, starting);
      this.#running.set(hostname, { service: started, ports });
      const forget = (): void => {
        this.#running.delete(hostname);
        this.#names.delete(hostname);
        started.stop({ kill: true }).catch(() => undefined);
      };
      ended.then(forget, forget);
      return endingAs(process, ended);
    } catch (error) {
      receiving.then((channel) => channel.close()).catch(() => undefined);
      cancel.abort();
      throw error instanceof GuestFailure ? errorFor(error.number, spec.cwd) : error;
    }
  }

  async #healthy(
    hostname: string,
    process: DriverProcess,
    output: AsyncIterable<Uint8Array>,
    starting: Promise<Service>,
  ): Promise<Service> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const what = `The service "${hostname}" did not answer on its ports within ${HEALTHY_WITHIN} ms`;
      const hint = "the engine connects from outside the container: listen on 0.0.0.0, not on 127.0.0.1";
      timer = setTimeout(() => reject(new SandboxError("unavailable", what, { hint })), HEALTHY_WITHIN);
    });
    const over = process.wait().then(async ({ exitCode }) => {
      const said = (await textOf(output)).trim();
      const what = `The service "${hostname}" ended with ${exitCode} before its ports answered`;
      throw new SandboxError("unavailable", said === "" ? what : `${what}: ${said}`);
    });
    for (const each of [late, over]) each.catch(() => undefined);
    try {
      return await Promise.race([starting, late, over]);
    } finally {
      clearTimeout(timer);
    }
  }
}

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += Buffer.from(chunk).toString("utf8");
    if (text.length > SHOWN) break;
  }
  return text.slice(0, SHOWN);
}
