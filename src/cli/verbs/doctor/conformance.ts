import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "../../../sandbox/types.js";
import {
  conformanceOf,
  deleteSnapshot,
  listSnapshots,
  openSandbox,
  removeSandbox,
  saveConformance,
  temporaryDirectory,
} from "../../../sandbox.js";
import {
  type ConformanceHarness,
  type ConformanceReport,
  conformanceCases,
  formatReport,
  runConformance,
} from "../../../testing.js";
import { UsageError } from "../../commands.js";
import type { Invocation } from "../../invocation.js";

const AT_ONCE = 4;

/** Runs the conformance kit on a backend, prints the table, and says whether the backend conforms. */
export async function runConformanceKit(backend: string, invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  // What the kit makes on the host goes there, so that an interrupted run leaves nothing either.
  const temporary = await mkdtemp(join(temporaryDirectory(), "glovebox-kit-"));
  process.env["TMPDIR"] = temporary;
  // Two signals end the program without another look at what is below.
  process.once("exit", () => removeAtOnce(temporary));
  try {
    const report = await runCases(backend, invocation);
    if (report === undefined) return 1;
    if (!flags.has("only")) await saveConformance(backend, { on: "this machine", counts: await countOutcomes(report) });
    if (flags.has("json")) await screen.printJson(report);
    else await screen.print(formatReport(report));
    return report.failed > 0 ? 1 : 0;
  } finally {
    await rm(temporary, { recursive: true, force: true, maxRetries: 5 });
  }
}

function removeAtOnce(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The program is at its end, and what was asked of it does not depend on this.
  }
}

/** The report; undefined when the run was interrupted, and then every sandbox has been taken down. */
async function runCases(
  backend: string,
  { flags, screen, interruption }: Invocation,
): Promise<ConformanceReport | undefined> {
  const { skips, directoryOf, sharesNetwork } = await conformanceOf(backend);
  const only = flags.text("only")?.split(",").filter(Boolean);
  if (only?.length === 0) throw new UsageError("--only names no case", "for example --only exec,files");
  const opened = new Set<Sandbox>();
  const harness: ConformanceHarness = {
    backend,
    open: async (opts = {}) => {
      interruption.signal.throwIfAborted();
      const sandbox = await openSandbox({ signal: interruption.signal, ...opts, backend });
      opened.add(sandbox);
      return sandbox;
    },
    remove: removeSandbox,
    ...(skips && { skips }),
    host: { ...(directoryOf && { directoryOf }), ...(sharesNetwork !== undefined && { sharesNetwork }) },
  };
  return await screen.during(`conformance of ${backend}`, async (progress) => {
    let done = 0;
    const running = runConformance(harness, {
      concurrency: AT_ONCE,
      ...(only && { only }),
      onResult: ({ id }) => progress.tell(`conformance of ${backend}: ${++done} of ${conformanceCases.length}, ${id}`),
    });
    const ended = new Promise<undefined>((resolve) => interruption.onEnd(() => resolve(undefined)));
    const report = await Promise.race([running, ended]);
    if (report === undefined) await Promise.all([...opened].map((sandbox) => sandbox.teardown()));
    await forgetSnapshots(new Set([...opened].map(({ id }) => id)));
    return report;
  });
}

/** Deletes what the kit saved: a snapshot outlives its sandbox, and nobody else knows of these. */
async function forgetSnapshots(sandboxes: ReadonlySet<string>): Promise<void> {
  for (const { id, sandboxId } of await listSnapshots()) if (sandboxes.has(sandboxId)) await deleteSnapshot(id);
}

/** A skip for what the backend does not claim is a refusal that was seen; any other means that nothing was. */
async function countOutcomes({ backend, results }: ConformanceReport): Promise<Record<string, number>> {
  const { skips = {} } = await conformanceOf(backend);
  const counts: Record<string, number> = {};
  for (const { id, status, reason = "" } of results) {
    const isRefusal = reason.startsWith("capabilities.") || skips[id] !== undefined;
    const outcome = status !== "skipped" ? status : isRefusal ? "refused" : "not run";
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}
