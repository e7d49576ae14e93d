import type { ProcessHandle, ProcessOutput, ReadOutputOptions } from "../../../contracts/types.js";
import * as is from "../../util/schema.js";
import { check, type Schema } from "../../util/schema.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";
import { signalOf } from "./process-arguments.js";
import { attachTo, waitFor } from "./spawned-process.js";
import type { TrackedProcess } from "./tracked-process.js";

const MAX_WAIT = 3_600_000;

const readOptions: Schema<ReadOutputOptions> = is.object({
  cursor: is.whole(0, Number.MAX_SAFE_INTEGER),
  stream: is.oneOf("stdout", "stderr"),
  maxBytes: is.whole(1, Number.MAX_SAFE_INTEGER),
  wait: is.whole(0, MAX_WAIT),
  signal: is.signal,
});

/** A process of the table in the form that callers see. `guard` fills in errors, and refuses everything once the sandbox is closed. */
export function toHandle(
  state: OpenSandboxState,
  process: TrackedProcess,
  guard: <T>(operation: string, work: () => Promise<T>) => Promise<T>,
): ProcessHandle {
  return {
    id: process.id,
    argv: [...process.argv],
    startedAt: process.startedAt,
    get state() {
      return process.hasEnded ? "ended" : "running";
    },
    get exit() {
      return process.exit;
    },
    read: (opts: ReadOutputOptions = {}): Promise<ProcessOutput> =>
      guard("read", async () => {
        check(opts, readOptions, "options");
        return await process.read(opts);
      }),
    attach: () => guard("attach", async () => attachTo(state, process)),
    kill: (name = "SIGTERM") =>
      guard("kill", async () => {
        const signal = signalOf(name);
        process.live?.kill(signal);
      }),
    wait: () => waitFor(state, process),
  };
}
