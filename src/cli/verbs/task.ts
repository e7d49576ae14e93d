import { availableParallelism } from "node:os";
import {
  type Batch,
  commandOf,
  createSandboxManager,
  type FileTask,
  managerNames,
  readTaskFile,
  runTasks,
  type SandboxManager,
  type TaskResult,
} from "../../tasks.js";
import { isoTime } from "../../util/iso-time.js";
import { parseCount, parseDuration, UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { LiveTable } from "./task/live-table.js";
import { digestOf, type ResultLine, ResultsFile } from "./task/results-file.js";

interface Planned {
  readonly task: FileTask;
  readonly digest: string;
  /** Its result in an earlier run. */
  readonly earlier: ResultLine | undefined;
}

/** `glovebox task run <file>`: runs every task of a file and writes the results as lines of JSON. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, argv, screen, interruption } = invocation;
  const [action, path = ""] = operands;
  if (action !== "run")
    throw new UsageError(`task has no action "${action}"`, "glovebox task run tasks.yaml -- command");
  const given = argv.length > 0 ? argv : undefined;
  const concurrency = parseCount("--concurrency", flags.text("concurrency") ?? String(availableParallelism()));
  const limit = flags.text("timeout");
  const timeout = limit === undefined ? {} : { timeout: parseDuration("--timeout", limit) };
  const backend = parseManager(flags.text("backend"));
  const file = await readTaskFile(path, { trust: flags.has("trust") });
  const named = flags.text("results");
  const resultsPath = named ?? `${path.replace(/\.(ya?ml|json)$/, "")}.results.jsonl`;
  const results = await ResultsFile.open(resultsPath, { isNamed: named !== undefined });
  const planned = file.tasks.map((task): Planned => {
    const digest = digestOf(task, commandOf(task, given));
    return { task, digest, earlier: flags.has("again") ? undefined : results.find(task.setup.taskId, digest) };
  });
  const open = planned.filter(({ earlier }) => earlier === undefined);
  const tally = new Tally(planned);
  if (open.length > 0) {
    let report: ((message: string) => void) | undefined;
    const manager = createSandboxManager({
      ...backend,
      networkEnabled: file.networkEnabled,
      ...(file.batchIdPrefix !== undefined && { batchIdPrefix: file.batchIdPrefix }),
      onEvent: ({ type, message, progress }) => {
        const share = progress === undefined ? "" : ` (${Math.round((100 * progress.current) / progress.total)} %)`;
        if (type.startsWith("image-")) report?.(`${message}${share}`);
        if (type === "warning") void screen.printNote(`warning: ${message}`);
        if (type === "leak") void screen.printError(message, "glovebox reap tries again");
      },
    });
    const setups = open.map(({ task }) => task.setup);
    const batch = await screen.during("preparing the images", (progress) => {
      report = (message) => progress.update(message);
      return manager.setupBatch(setups, { signal: interruption.signal });
    });
    await runAll(invocation, manager, batch, open, results, tally, {
      concurrency,
      ...timeout,
      ...(given && { argv: given }),
    });
  }
  await screen.printNote(tally.summary);
  await screen.printNote(`results: ${resultsPath}`);
  return tally.allSucceeded ? 0 : 1;
}

/** The backend of the tasks. Unlike a single sandbox, a task needs containers, so few backends can run one. */
function parseManager(backend: string | undefined): { backend?: string } {
  if (backend === undefined) return {};
  const known = managerNames();
  if (known.includes(backend)) return { backend };
  throw new UsageError(`--backend ${backend} can't run tasks`, `use --backend ${known.join(" or ")}, or leave it out`);
}

async function runAll(
  { flags, screen, interruption }: Invocation,
  manager: SandboxManager,
  batch: Batch,
  open: readonly Planned[],
  results: ResultsFile,
  tally: Tally,
  opts: { argv?: readonly string[]; concurrency: number; timeout?: number },
): Promise<void> {
  const digests = new Map(open.map(({ task, digest }) => [task.setup.taskId, digest]));
  const table = new LiveTable(screen.stderr, process.env, [...digests.keys()]);
  try {
    await runTasks(
      manager,
      batch,
      open.map(({ task }) => task),
      {
        ...opts,
        signal: interruption.signal,
        onStage: (taskId, stage) => {
          // The result says how it ended: a task is done for the engine even if its command failed.
          if (stage !== "done" && stage !== "failed") table.set(taskId, stage);
        },
        async onResult(result) {
          const line = { ...result, digest: digests.get(result.taskId) ?? "", endedAt: isoTime() };
          await results.add(line);
          if (flags.has("json") || screen.stdout.isTTY !== true) await screen.printJsonLine(line);
          tally.add(result);
          table.set(result.taskId, isSuccess(result) ? "done" : "failed", noteOf(result));
          if (screen.stderr.isTTY !== true) await screen.printNote(`${result.taskId}: ${noteOf(result)}`);
        },
      },
    );
  } finally {
    table.stop();
    await screen.during("removing the tasks' containers", () => batch.teardown());
  }
}

function isSuccess({ exitCode, timedOut, error }: TaskResult): boolean {
  return error === undefined && exitCode === 0 && timedOut !== true;
}

function noteOf({ exitCode, timedOut, durationMs = 0, error }: TaskResult): string {
  if (error !== undefined) return `${error.code}: ${error.message.split("\n")[0]}`;
  const how = timedOut === true ? "killed at its timeout" : `exit code ${exitCode}`;
  return `${how} after ${(durationMs / 1000).toFixed(1)} s`;
}

/** Counts the results of this run and of earlier ones. */
class Tally {
  readonly #total: number;
  readonly #start = performance.now();
  #skipped = 0;
  #succeeded = 0;
  #ended = 0;
  #errors = 0;

  constructor(planned: readonly Planned[]) {
    this.#total = planned.length;
    for (const { earlier } of planned) {
      if (earlier === undefined) continue;
      this.#skipped += 1;
      this.add(earlier);
    }
  }

  add(result: TaskResult): void {
    if (result.error !== undefined) this.#errors += 1;
    else if (isSuccess(result)) this.#succeeded += 1;
    else this.#ended += 1;
  }

  get allSucceeded(): boolean {
    return this.#succeeded === this.#total;
  }

  get summary(): string {
    const left = this.#total - this.#succeeded - this.#ended - this.#errors;
    const parts = [
      `${this.#succeeded} succeeded`,
      `${this.#ended} failed`,
      `${this.#errors} could not be run`,
      ...(left > 0 ? [`${left} not done`] : []),
      ...(this.#skipped > 0 ? [`${this.#skipped} of them in an earlier run`] : []),
    ];
    return `${this.#total} ${this.#total === 1 ? "task" : "tasks"}: ${parts.join(", ")}; ${((performance.now() - this.#start) / 1000).toFixed(1)} s`;
  }
}
