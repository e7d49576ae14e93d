import type { Emit } from "./events.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";

/**
 * The state of a second handle to an open sandbox. It inherits everything, so that both always see the same; its own are only the directory that
 * relative paths start from, and whether it is closed. The owner's listener gets every event; `emit` gets those of calls through the handle.
 */
export function shareState(owner: OpenSandboxState, emit: Emit | undefined): OpenSandboxState {
  let isClosed = false;
  return Object.create(owner, {
    cwd: { value: owner.driver.workDir, writable: true },
    emit: { value: both(owner.emit, emit) },
    // A call through the handle is a use of the sandbox.
    calls: {
      get: () => owner.calls,
      set: (calls: number) => {
        owner.calls = calls;
      },
    },
    closed: {
      get: () => isClosed || owner.closed,
      set: (closed: boolean) => {
        isClosed = closed;
      },
    },
  }) as OpenSandboxState;
}

function both(first: Emit | undefined, second: Emit | undefined): Emit | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return (...event) => {
    first(...event);
    second(...event);
  };
}
