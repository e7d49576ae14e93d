import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { type HostProcess, hostProcess, type ProcessSpec } from "./host-process.js";
import { Starter } from "./starter.js";

/** While so many run, another process starts the next ones. For fewer that would take longer. */
const MANY = 4;
/** Bun starts processes without a fork, and its streams can't be left unreferenced. */
const FORKS = process.versions["bun"] === undefined;

let running = 0;
let starter: Starter | undefined;

/** Starts a process of the host. */
export function startProcess(spec: ProcessSpec): HostProcess {
  const another = FORKS && spec.endsWithParent && running >= MANY ? findStarter() : undefined;
  const started = another?.start(spec) ?? startDirectly(spec);
  running += 1;
  void started.gone.then(() => {
    running -= 1;
  });
  return started;
}

function findStarter(): Starter | undefined {
  if (starter?.hasRoom !== true) starter = new Starter();
  return starter.hasRoom ? starter : undefined;
}

function startDirectly({ command, env, tellsEnd }: ProcessSpec): HostProcess {
  const [file = "", ...args] = command;
  const child = spawn(file, args, {
    stdio: ["ignore", "ignore", "pipe", "pipe", ...(tellsEnd ? (["pipe"] as const) : [])],
    env,
    cwd: "/",
    // A Ctrl-C on the terminal is for us: we end what runs in the sandbox in order. The channel remains the lease.
    detached: true,
  });
  child.unref();
  const { process, events } = hostProcess(child.stdio[3] as Socket, () => child.kill("SIGKILL"));
  if (child.pid !== undefined) events.started(child.pid);
  child.once("exit", () => events.ended());
  child.once("error", (error) => {
    events.complained(error.message);
    events.ended();
  });
  hear(child.stdio[2], events.complained);
  hear(child.stdio[4], events.reported);
  return process;
}

function hear(stream: unknown, each: (text: string) => void): void {
  const socket = stream as Socket | null | undefined;
  socket?.on("data", (chunk: Buffer) => each(chunk.toString("utf8")));
  socket?.on("error", () => undefined);
  socket?.unref();
}
