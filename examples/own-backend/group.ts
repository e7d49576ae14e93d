import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { PassThrough, type Readable } from "node:stream";
import type { DriverExit, DriverProcess, StartSpec } from "glovebox";

/** How long the output of an ended command is still read while a child of it holds it open. */
const DRAIN = 1_000;
const SWEEP = 300;

// #region group
/** A command in a process group of its own, so that one signal reaches all that stayed in it. */
export class Group implements DriverProcess {
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  readonly #child: ChildProcess;
  readonly #gone: Promise<DriverExit>;

  constructor(child: ChildProcess, timeout: number | undefined) {
    this.#child = child;
    // Piped on at once: Node throws away the output of an ended process that nobody has begun to read.
    this.stdout = (child.stdout as Readable).pipe(new PassThrough());
    this.stderr = (child.stderr as Readable).pipe(new PassThrough());
    child.stdin?.on("error", () => undefined);
    const deadline = timeout === undefined ? undefined : setTimeout(() => this.#signal("SIGKILL"), timeout);
    this.#gone = this.#end().finally(() => clearTimeout(deadline));
    // A program that could not be started is told of by the start; nobody waits for it here.
    this.#gone.catch(() => undefined);
  }

  async #end(): Promise<DriverExit> {
    const [code, signal] = (await once(this.#child, "exit")) as [number | null, NodeJS.Signals | null];
    const drained = Promise.all([ended(this.#child.stdout), ended(this.#child.stderr)]);
    await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, DRAIN))]);
    // Those that were forked meanwhile, too. One that is dead counts until somebody has asked how it ended, so not for ever.
    const until = performance.now() + SWEEP;
    while (this.#signal("SIGKILL") && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
    return signal === null ? { exitCode: code ?? 0 } : { exitCode: 128 + constants.signals[signal], signal };
  }

  /** Whether there was still somebody to get it. */
  #signal(name: NodeJS.Signals): boolean {
    try {
      return this.#child.pid !== undefined && process.kill(-this.#child.pid, name);
    } catch {
      return false;
    }
  }

  async kill(signal: string): Promise<void> {
    this.#signal(signal as NodeJS.Signals);
  }

  wait(): Promise<DriverExit> {
    return this.#gone;
  }

  async writeStdin(chunk: Uint8Array): Promise<void> {
    const { stdin } = this.#child;
    if (stdin?.writable) await new Promise<void>((resolve) => stdin.write(chunk, () => resolve()));
  }

  async closeStdin(): Promise<void> {
    this.#child.stdin?.end();
  }
}
// #endregion group

/** Starts a command in a directory; one that cannot be started is a process that ends with 126 or 127. */
export async function startGroup(spec: StartSpec, directory: string): Promise<DriverProcess> {
  const [program = "", ...args] = spec.argv;
  const stdin = spec.stdin === "pipe" ? "pipe" : "ignore";
  try {
    const options = { cwd: directory, env: spec.env, detached: true, stdio: [stdin, "pipe", "pipe"] } as const;
    const child = spawn(program, args, { ...options, stdio: [...options.stdio] });
    const group = new Group(child, spec.timeout);
    await once(child, "spawn");
    return group;
  } catch (error) {
    const missing = ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
    return neverStarted(missing ? 127 : 126, `${program}: ${missing ? "not found" : "cannot be executed"}\n`);
  }
}

function neverStarted(exitCode: number, complaint: string): DriverProcess {
  const say = async function* (...texts: string[]): AsyncGenerator<Uint8Array> {
    for (const text of texts) yield Buffer.from(text);
  };
  return {
    stdout: say(),
    stderr: say(complaint),
    writeStdin: async () => undefined,
    closeStdin: async () => undefined,
    kill: async () => undefined,
    wait: async () => ({ exitCode }),
  };
}

async function ended(stream: Readable | null): Promise<void> {
  if (stream && !stream.readableEnded && !stream.closed) await once(stream, "close").catch(() => undefined);
}
