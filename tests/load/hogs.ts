import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";

/** On two cores there are fifty. */
const PER_CORE = 25;
/** Seconds of processor time after which each ends by itself: more than its share of a whole suite. */
const MOST = 20;

/** Programs that only use the processor, as somebody else's work on this machine would. */
export interface Hogs extends Disposable {
  /** They stand still. */
  rest(): void;
  /** They run. */
  work(): void;
}

/**
 * Starts them, at rest. They end with this process however it ends, after their share of processor time, or when disposed.
 * Each has a session of its own, or the kernel would count all of them as one.
 */
export async function startHogs(): Promise<Hogs> {
  const script = `ulimit -t ${MOST}; kill -STOP $$; while :; do :; done`;
  const all: ChildProcess[] = [];
  for (let i = 0; i < PER_CORE * availableParallelism(); i++) {
    const args = ["--pdeathsig", "KILL", "sh", "-c", script, "glovebox-hog"];
    all.push(spawn("setpriv", args, { stdio: "ignore", detached: true }));
  }
  await Promise.all(all.map((child) => once(child, "spawn")));
  const signal = (name: NodeJS.Signals): void => {
    for (const child of all) child.kill(name);
  };
  return { rest: () => signal("SIGSTOP"), work: () => signal("SIGCONT"), [Symbol.dispose]: () => signal("SIGKILL") };
}
