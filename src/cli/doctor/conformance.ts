import type { Sandbox } from "../../sandbox/types.js";
import { conformanceOf, openSandbox, removeSandbox } from "../../sandbox.js";
import { type ConformanceHarness, conformanceCases, formatReport, runConformance } from "../../testing.js";
import type { Invocation } from "../invocation.js";

const AT_ONCE = 4;

/** Runs the conformance kit on a backend, prints the table, and says whether the backend conforms. */
export async function runConformanceKit(backend: string, { flags, screen, interruption }: Invocation): Promise<number> {
  const { skips, directoryOf, sharesNetwork } = await conformanceOf(backend);
  const only = flags.text("only")?.split(",").filter(Boolean);
  const open = new Set<Sandbox>();
  const harness: ConformanceHarness = {
    backend,
    open: async (opts = {}) => {
      interruption.signal.throwIfAborted();
      const sandbox = await openSandbox({ signal: interruption.signal, ...opts, backend });
      open.add(sandbox);
      return sandbox;
    },
    remove: removeSandbox,
    ...(skips && { skips }),
    host: { ...(directoryOf && { directoryOf }), ...(sharesNetwork !== undefined && { sharesNetwork }) },
  };
  const report = await screen.during(`conformance of ${backend}`, (progress) => {
    let done = 0;
    const running = runConformance(harness, {
      concurrency: AT_ONCE,
      ...(only && { only }),
      onResult: ({ id }) => progress.tell(`conformance of ${backend}: ${++done}/${conformanceCases.length}, ${id}`),
    });
    const ended = new Promise<undefined>((resolve) => interruption.onEnd(() => resolve(undefined)));
    return Promise.race([running, ended]);
  });
  if (report === undefined) {
    await Promise.all([...open].map((sandbox) => sandbox.teardown()));
    return 1;
  }
  if (flags.has("json")) await screen.printJson(report);
  else await screen.print(formatReport(report));
  return report.failed > 0 ? 1 : 0;
}
