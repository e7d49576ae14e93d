import { SandboxError } from "../../../../contracts/errors.js";
import { shellQuote } from "../../../util/shell.js";
import type { DriverExit, DriverProcess, StartSpec } from "../../types.js";
import type { RemoteSandbox } from "./client.js";
import { diagnose, statusOf } from "./failure.js";

const NO_LIMIT = 24 * 3600;

/** Whether commands use the service's plain `executeCommand`, for debugging: `DAYTONA_SIMPLE_EXEC=1`. */
export function isSimple(env: NodeJS.ProcessEnv = process.env): boolean {
  return env["DAYTONA_SIMPLE_EXEC"] === "1";
}

/**
 * Runs a command with the service's `executeCommand`: one string of output, no stdin, whole seconds. After a failure that string is on both
 * streams, so that it is also found on stderr.
 */
export function startSimple(remote: RemoteSandbox, spec: StartSpec): DriverProcess {
  if (spec.pty !== undefined || spec.stdin === "pipe") {
    throw new SandboxError("unsupported", "With DAYTONA_SIMPLE_EXEC=1 a command has neither stdin nor a terminal");
  }
  if (spec.combined === true) {
    throw new SandboxError("unsupported", 'With DAYTONA_SIMPLE_EXEC=1 a command has no output: "combined"');
  }
  const seconds = spec.timeout === undefined ? NO_LIMIT : Math.ceil(spec.timeout / 1_000);
  let kill: (exit: DriverExit) => void = () => undefined;
  const killed = new Promise<DriverExit>((resolve) => {
    kill = resolve;
  });
  const call = run(remote, spec, seconds);
  const exit = Promise.race([call.then((ended) => ended.exit), killed]);
  exit.catch(() => undefined);
  const output = async function* (pick: (ended: Ended) => string): AsyncGenerator<Uint8Array> {
    const ended = await Promise.race([call, killed.then((): Ended => ({ result: "", exit: { exitCode: 137 } }))]);
    const text = pick(ended);
    if (text !== "") yield Buffer.from(text);
  };
  return {
    stdout: output(({ result }) => result),
    stderr: output(({ result, exit: { exitCode } }) => (exitCode === 0 ? "" : result)),
    writeStdin: async () => undefined,
    closeStdin: async () => undefined,
    // The service ends the command at its own deadline; there is no other way to end it.
    kill: async (signal) => {
      if (signal === "SIGKILL") kill({ exitCode: 137, signal: "SIGKILL" });
    },
    wait: () => exit,
  };
}

interface Ended {
  readonly result: string;
  readonly exit: DriverExit;
}

async function run(remote: RemoteSandbox, spec: StartSpec, seconds: number): Promise<Ended> {
  try {
    const { exitCode, result } = await remote.process.executeCommand(
      // Otherwise, a command that reads stdin would read the rest of its own script.
      `${shellQuote(spec.argv)} </dev/null`,
      spec.cwd,
      { ...spec.env },
      seconds,
    );
    return { result, exit: { exitCode: exitCode < 0 ? 137 : exitCode } };
  } catch (error) {
    if (statusOf(error) === 408) return { result: "", exit: { exitCode: 137, signal: "SIGKILL", timedOut: true } };
    throw await diagnose(remote, error, "a command");
  }
}
