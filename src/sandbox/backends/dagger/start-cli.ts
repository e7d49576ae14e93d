import { type ChildProcess, spawn } from "node:child_process";
import { SandboxError } from "../../../../contracts/errors.js";

/** The port and the token of a session. */
export interface Endpoint {
  readonly port: number;
  readonly token: string;
}

/** A session whose program this process started. */
export interface OwnSession extends Endpoint {
  /** Resolves once the program has ended. */
  close(): Promise<void>;
}

/** In milliseconds. The engine may have to be downloaded first. */
const START_LIMIT = 300_000;
const CLOSE_LIMIT = 10_000;
const KEPT_STDERR = 4_096;

/**
 * Starts `dagger session` and reads where it listens.
 *
 * If the program fails, the SDK's own start throws from a promise that nobody awaits, which ends the process. Here a failure is `unavailable`, with
 * the last output of the program. The program ends with its stdin, so also if this process is killed.
 */
export async function startCli(program: string): Promise<OwnSession> {
  const child = spawn(program, ["session", "--label", "dagger.io/sdk.name:glovebox"], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, DAGGER_SESSION_PORT: undefined, DAGGER_SESSION_TOKEN: undefined },
  });
  child.stdin.on("error", () => undefined);
  const gone = new Promise<string>((resolve) => {
    child.on("error", (error) => resolve(`could not be started: ${error.message}`));
    child.on("close", (code, name) => resolve(`ended with ${name ?? `exit code ${code}`}`));
  });
  const close = (): Promise<void> => end(child, gone);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-KEPT_STDERR);
  });
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`gave no session within ${START_LIMIT / 1000} s`), START_LIMIT);
  });
  try {
    const endpoint = await Promise.race([
      firstLine(child).then(parseEndpoint),
      Promise.race([gone, expired]).then((how) => Promise.reject(failed(how, said))),
    ]);
    child.unref();
    // On Bun a child's stdin has no unref.
    for (const stream of [child.stdin, child.stdout, child.stderr] as { unref?(): void }[]) stream.unref?.();
    return { ...endpoint, close };
  } catch (error) {
    await close();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Parses the line that the program prints: `{"port":1234,"session_token":"..."}`. */
function parseEndpoint(line: string): Endpoint {
  try {
    const { port, session_token: token } = JSON.parse(line) as { port?: unknown; session_token?: unknown };
    if (typeof port === "number" && Number.isInteger(port) && typeof token === "string") return { port, token };
  } catch {
    // Reported below; the line itself may contain the token.
  }
  throw failed("printed something that is not a session", "");
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
  });
}

/** Closes its stdin first, as it expects; then sends signals. */
async function end(child: ChildProcess, gone: Promise<unknown>): Promise<void> {
  child.ref();
  child.stdin?.end();
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), CLOSE_LIMIT);
  await gone;
  clearTimeout(timer);
}

function failed(how: string, said: string): SandboxError {
  const last = said.trim().split("\n").slice(-5).join("; ");
  return new SandboxError("unavailable", `The dagger program ${how}${last === "" ? "" : `: ${last}`}`, {
    backend: "dagger",
    hint: "run `dagger core version` by hand: it needs a container runtime that can start the Dagger engine",
  });
}
