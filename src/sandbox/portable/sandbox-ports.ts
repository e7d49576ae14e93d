import { SandboxError } from "../../../contracts/errors.js";
import * as is from "../../util/schema.js";
import { check, type Schema } from "../../util/schema.js";
import { assertCapabilities, reasonFor } from "../capabilities.js";
import { PortRelay } from "../ports.js";
import type { WaitForPortOptions } from "../types.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";

const DEFAULT_WAIT = 30_000;

const waitOptions: Schema<WaitForPortOptions> = is.object({ timeout: is.timeout, signal: is.signal });

/** The ports of one open sandbox. */
export class SandboxPorts {
  readonly #state: OpenSandboxState;
  #relay: PortRelay | undefined;

  constructor(state: OpenSandboxState) {
    this.#state = state;
  }

  async url(port: number): Promise<string> {
    const { driver, emit } = this.#state;
    check(port, is.port, "port");
    assertCapabilities({ ports: port }, driver.capabilities, driver.backend);
    const native = await driver.url?.(port);
    if (native !== undefined) return native;
    if (driver.connect === undefined) throw this.#unsupported("url");
    this.#relay ??= new PortRelay({
      connect: (to, signal) => driver.connect?.(to, signal) ?? Promise.reject(this.#unsupported("url")),
      warn: (message) => emit?.("warning", message),
    });
    return await this.#relay.url(port);
  }

  /** `expired` is aborted at the deadline of the whole operation. */
  async waitForPort(port: number, opts: WaitForPortOptions, expired: AbortSignal): Promise<void> {
    const { driver, operationTimeout } = this.#state;
    check(port, is.port, "port");
    check(opts, waitOptions, "options");
    if (driver.waitForPort === undefined) throw this.#unsupported("waitForPort");
    const timeout = Math.min(opts.timeout ?? DEFAULT_WAIT, operationTimeout);
    const { signal: asked } = opts;
    const aborted = (): SandboxError =>
      new SandboxError("aborted", `Waiting for port ${port} was aborted`, { cause: asked?.reason });
    if (asked?.aborted === true) throw aborted();
    let giveUp = (): void => undefined;
    // The driver may take a while to give up, and its caller need not wait for that.
    const over = new Promise<never>((_, reject) => {
      giveUp = () => reject(aborted());
    });
    asked?.addEventListener("abort", giveUp, { once: true });
    const signal = asked === undefined ? expired : AbortSignal.any([asked, expired]);
    try {
      if (await Promise.race([driver.waitForPort(port, timeout, signal), over])) return;
    } finally {
      asked?.removeEventListener("abort", giveUp);
    }
    throw new SandboxError("unavailable", `Nobody listened on port ${port} in the sandbox within ${timeout} ms`, {
      hint: "check that the server runs, and that it listens on 127.0.0.1, ::1 or every address; or raise timeout",
    });
  }

  /** Closes every listener and connection that it opened on this machine. */
  async close(): Promise<void> {
    await this.#relay?.close();
  }

  #unsupported(operation: string): SandboxError {
    const { backend, capabilities } = this.#state.driver;
    return new SandboxError(
      "unsupported",
      `The ${backend} backend has no ${operation}${reasonFor("ports", capabilities)}`,
    );
  }
}
