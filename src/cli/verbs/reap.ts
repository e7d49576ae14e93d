import { reap } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { parseSize, UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { toFailure } from "../report-error.js";

/** `glovebox reap`. */
export async function run({ flags, screen, interruption }: Invocation): Promise<number> {
  const dryRun = flags.has("dry-run");
  const backend = flags.text("backend");
  const size = flags.text("cache");
  if (dryRun && size !== undefined) throw new UsageError("--dry-run does not work with --cache", "remove --cache");
  const cache = size === undefined ? {} : { cache: /^0*$/.test(size) ? 0 : parseSize("--cache", size) };
  const report = await screen.during("looking for leftovers", (progress) =>
    reap({
      dryRun,
      ...cache,
      ...(backend !== undefined && { backend }),
      signal: interruption.signal,
      onEvent: ({ message }) => progress.update(message),
    }),
  );
  const failed = report.failed.map(({ id, error }) => {
    const { code, message, hint } = toFailure(error);
    return { id, code, message, hint };
  });
  if (flags.has("json")) {
    await screen.printJson({ ...report, failed, dryRun });
  } else {
    const { good, bad } = screen.style;
    const bases = report.cache?.length;
    const lines = [
      ...report.removed.map((id) => `${good(dryRun ? "would remove" : "removed")} ${id}`),
      ...(report.swept ?? []).map((name) => `${good(dryRun ? "would remove" : "removed")} ${toInertLine(name)}`),
      ...(report.cache ?? []).map((path) => `${good("removed")} ${toInertLine(path)}`),
      ...failed.map(({ id, message }) => `${bad("failed")} ${id}: ${toInertLine(message)}`),
      `${report.removed.length} ${dryRun ? "to remove" : "removed"}, ${report.kept.length} kept or in use, ${failed.length} failed`,
      ...(bases === undefined ? [] : [`${bases} removed from the cache`]),
    ];
    await screen.print(`${lines.join("\n")}\n`);
  }
  return failed.length > 0 ? 1 : 0;
}
