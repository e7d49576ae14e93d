import type { Backend } from "../../contracts/backend.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox } from "../../contracts/sandbox.js";
import type { SandboxEvent } from "../../contracts/types.js";
import { discardLive } from "../sandbox/host.js";
import { type OpenOptions, openSandbox } from "../sandbox.js";
import { defined } from "../util/defined.js";
import { type Attempt, labelsOf, MAX_OUTPUT } from "./attempt.js";
import { removeLeft } from "./left-sandboxes.js";
import type { OncePerKey } from "./once-per-key.js";
import { commandOf } from "./plan-tasks.js";
import type { CommandTask } from "./types.js";

/** How much longer than its calls a sandbox of a dead driver may stay at a service, in milliseconds. */
const SPARE_LIFE = 3_600_000;
const LONGEST_LIFE = 30 * 86_400_000;

/** Runs a command in a sandbox of its own. */
export async function runCommand(
  task: CommandTask,
  attempt: Attempt,
  backend: Backend,
  images: OncePerKey,
): Promise<void> {
  const { options, signal } = attempt;
  const began = performance.now();
  const { adopted } = attempt;
  const opts = openOptions(task, attempt, backend);
  const image = backend.images === undefined ? undefined : (opts.image ?? backend.defaultImage);
  const open = (): Promise<Sandbox> => openSandbox(opts);
  const sandbox =
    (adopted === undefined ? undefined : await adopt(adopted, opts, attempt.note)) ??
    // What the first one fetches or builds, the others find.
    (await (image === undefined ? open() : images.first(image, open)));
  if (opts.keep === true) discardLive(sandbox.id);
  try {
    const setupMs = performance.now() - began;
    await attempt.started(sandbox.id);
    if (task.files !== undefined) await sandbox.writeFiles(task.files, { signal });
    const command = commandOf(task, options.argv);
    const timeout = task.timeout ?? options.timeout;
    const call = {
      signal,
      maxOutput: options.maxOutput ?? MAX_OUTPUT,
      env: { ...task.env, GLOVEBOX_TASK_ID: task.id },
      ...defined({ timeout, cwd: task.cwd, stdin: task.stdin }),
    };
    const { exitCode, timedOut, stdout, stderr, truncated, durationMs } = await (typeof command === "string"
      ? sandbox.shell(command, call)
      : sandbox.exec({ argv: command, ...call }));
    const outcome = exitCode === 0 && !timedOut ? "passed" : "failed";
    const resource = sandbox.id;
    const ended = { outcome, exitCode, timedOut, stdout, stderr, truncated, durationMs, setupMs, resource } as const;
    await Promise.all([attempt.ended(ended), sandbox.teardown()]);
  } finally {
    await sandbox.teardown();
  }
}

/** How the sandbox of an attempt is opened. */
function openOptions(task: CommandTask, attempt: Attempt, backend: Backend): OpenOptions {
  const { options, signal, note } = attempt;
  const { sandbox = {} } = options;
  const timeout = task.timeout ?? options.timeout ?? DEFAULT_OPERATION_TIMEOUT;
  const life = (sandbox.operationTimeout ?? DEFAULT_OPERATION_TIMEOUT) + timeout + SPARE_LIFE;
  return {
    ...sandbox,
    backend: backend.name,
    ...(task.image !== undefined && { image: task.image }),
    labels: { ...sandbox.labels, ...labelsOf(attempt, task.id) },
    // What a service has made is worth something: if this process dies, the next one adopts it.
    ...(isAdoptable(backend) && { keep: true, ttl: Math.min(life, LONGEST_LIFE) }),
    signal,
    onEvent: ({ type, message }: SandboxEvent) => {
      if (type === "progress" || type === "warning" || type === "leak") note({ type, message, taskId: task.id });
    },
  };
}

/** Whether a sandbox that was made and not used is worth keeping when the driver dies. */
export function isAdoptable(backend: Backend): boolean {
  return backend.runsHere !== true && backend.reopen !== undefined;
}

/** Reopens what an earlier driver has made for this attempt; undefined if that is no longer possible. */
async function adopt(
  id: string,
  { backend, signal, ...opts }: OpenOptions,
  note: Attempt["note"],
): Promise<Sandbox | undefined> {
  try {
    return await openSandbox({ id, ...defined({ backend, signal }), ...duringCall(opts) });
  } catch (error) {
    if (signal?.aborted === true) throw error;
    await removeLeft(id, note);
    return undefined;
  }
}

/** What its record does not have. */
function duringCall({ onEvent, operationTimeout, keep, env }: OpenOptions): OpenOptions {
  return defined({ onEvent, operationTimeout, keep, env }) as OpenOptions;
}
