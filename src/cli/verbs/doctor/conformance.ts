import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { conformanceOf, saveConformance, temporaryDirectory } from "../../../sandbox/host.js";
import type { Sandbox } from "../../../sandbox/types.js";
import { deleteSnapshot, listSnapshots, openSandbox, removeSandbox } from "../../../sandbox.js";
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

/** Runs the conformance kit on a backend and prints the table; returns 0 if the backend conforms. */
export async function runConformanceKit(backend: string, invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  // The kit's files on the host go here, so that even an interrupted run leaves none.
  const temporary = await mkdtemp(join(temporaryDirectory(), "glovebox-kit-"));
  process.env["TMPDIR"] = temporary;
  // A second signal ends the program without running the code below.
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
    // The program is exiting anyway, and its result does not depend on this.
  }
}

/** The report; undefined if the run was interrupted, and then every sandbox is torn down. */
async function runCases(
  backend: string,
  { flags, screen, interruption }: Invocation,
): Promise<ConformanceReport | undefined> {
  const { skips, directoryOf, sharesNetwork, hasHttpPorts } = await conformanceOf(backend);
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
    host: {
      ...(directoryOf && { directoryOf }),
      ...(sharesNetwork !== undefined && { sharesNetwork }),
      ...(hasHttpPorts !== undefined && { hasHttpPorts }),
    },
  };
  return await screen.during(`testing ${backend}`, async (progress) => {
    let done = 0;
    const running = runConformance(harness, {
      concurrency: AT_ONCE,
      ...(only && { only }),
      onResult: ({ id }) => progress.update(`testing ${backend}: ${++done} of ${conformanceCases.length}, ${id}`),
    });
    const ended = new Promise<undefined>((resolve) => interruption.onEnd(() => resolve(undefined)));
    const report = await Promise.race([running, ended]);
    if (report === undefined) await Promise.all([...opened].map((sandbox) => sandbox.teardown()));
    await deleteSnapshots(new Set([...opened].map(({ id }) => id)));
    return report;
  });
}

/** Deletes the kit's snapshots: they outlive their sandboxes, and nothing else would delete them. */
async function deleteSnapshots(sandboxes: ReadonlySet<string>): Promise<void> {
  for (const { id, sandboxId } of await listSnapshots()) if (sandboxes.has(sandboxId)) await deleteSnapshot(id);
}

/** A skip for a capability the backend does not claim counts as refused; any other skip as not run. */
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
