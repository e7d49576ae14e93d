import { statSync } from "node:fs";
import { type BatchOptions, readBatch, readBatchOptions, readTasks, type TaskOutcome } from "../../batch.js";
import { WORKSPACE, withPreferredWorkDir, withUserConfig } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { showCommand } from "../../util/shell.js";
import { parseCount, parseDuration, parseWord, UsageError } from "../commands.js";
import type { Flags, Invocation } from "../invocation.js";
import { remoteOf, toOpenOptions } from "../sandbox-options.js";
import { formatTable } from "../terminal.js";
import { tokenFor } from "../token.js";
import { parseMoney, parseShard, placeOf } from "./batch/batch-place.js";
import { exportBatch } from "./batch/export-batch.js";
import { assertFlags, type BatchAction } from "./batch/flags-of-action.js";
import { followBatch } from "./batch/follow-batch.js";
import { causesText } from "./batch/progress-text.js";

export { placeOf } from "./batch/batch-place.js";
export { followBatch } from "./batch/follow-batch.js";

const OUTCOMES = ["infra", "refused", "failed", "passed"] as const;

/** `glovebox batch`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags } = invocation;
  const [action, ...paths] = operands;
  const [path = "", another] = paths;
  if (another !== undefined && action !== "export") {
    throw new UsageError(`batch ${action} takes one file or directory`, `glovebox batch ${action} ${path}`);
  }
  if (isAction(action)) assertFlags(action, invocation);
  const shard = flags.has("shard") ? parseShard("--shard", flags.text("shard") ?? "") : undefined;
  const folderOf = (each: string): string => flags.text("out") ?? placeOf(each, shard);
  switch (action) {
    case "run":
      return await followBatch(invocation, { ...(await newOptions(invocation, path)), out: folderOf(path) });
    case "resume":
      return await followBatch(invocation, await againOptions(invocation, folderOf(path)));
    case "retry": {
      const retry = flags.texts("only").map((text): TaskOutcome => parseWord("--only", text, OUTCOMES));
      if (retry.length === 0) throw new UsageError("batch retry needs --only", "for example --only infra");
      return await followBatch(invocation, { ...(await againOptions(invocation, folderOf(path))), retry });
    }
    case "status":
      return await printStatus(invocation, folderOf(path));
    case "export":
      return await exportBatch(
        invocation,
        paths.map((each) => placeOf(each, shard)),
      );
    default:
      throw new UsageError(
        `batch has no action "${action}"`,
        "glovebox batch run tasks.jsonl; see glovebox help batch",
      );
  }
}

async function newOptions(invocation: Invocation, path: string): Promise<Omit<BatchOptions, "out">> {
  const { flags, argv } = invocation;
  const numbers = numbersOf(flags);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    throw new UsageError(
      `${path} is a directory, not a file of tasks`,
      `to continue a batch: glovebox batch resume ${path}`,
    );
  }
  const read = await readTasks(path, { trust: flags.has("trust") });
  const { backend, sandbox } = await sandboxOptions(invocation);
  return {
    ...read,
    ...numbers,
    ...(backend !== undefined && { backend }),
    ...(Object.keys(sandbox).length > 0 && { sandbox }),
    ...(argv.length > 0 && { argv }),
    ...(flags.has("trust") && { trust: true }),
  };
}

/** What was written down, with what the command line says anew. */
async function againOptions(invocation: Invocation, folder: string): Promise<BatchOptions> {
  const { sandbox } = await sandboxOptions(invocation, false);
  const { sandbox: all = {}, ...rest } = await readBatchOptions(folder, { sandbox });
  // The token of a remote repository was not written down.
  return { ...rest, sandbox: { ...tokenFor(remoteOf(all.repo), process.env), ...all }, ...numbersOf(invocation.flags) };
}

function isAction(text: string | undefined): text is BatchAction {
  return ["run", "resume", "retry", "status", "export"].some((action) => action === text);
}

/** How its sandboxes are opened, as `exec` opens one. */
async function sandboxOptions(
  invocation: Invocation,
  isNew = true,
): Promise<{ backend: string | undefined; sandbox: NonNullable<BatchOptions["sandbox"]> }> {
  const { signal: _, onEvent: _e, ...typed } = await toOpenOptions(invocation);
  const { backend, ...sandbox } = isNew ? await withPreferredWorkDir(await withUserConfig(typed), WORKSPACE) : typed;
  const { ttl: _t, keep: _k, id: _i, name: _n, ifExists: _f, ...rest } = sandbox;
  return { backend, sandbox: rest };
}

/** Those that any run may have otherwise than the last one. */
export function numbersOf(
  flags: Flags,
): Pick<BatchOptions, "concurrency" | "timeout" | "retries" | "maxCost" | "shard"> {
  const given = <K extends string, T>(
    flag: string,
    option: K,
    parse: (flag: string, text: string) => T,
  ): { [P in K]?: T } => {
    const text = flags.text(flag);
    return text === undefined ? {} : ({ [option]: parse(`--${flag}`, text) } as { [P in K]?: T });
  };
  return {
    ...given("concurrency", "concurrency", parseCount),
    ...given("timeout", "timeout", parseDuration),
    ...given("retries", "retries", (flag, text) => (text === "0" ? 0 : parseCount(flag, text))),
    ...given("max-cost", "maxCost", parseMoney),
    ...given("price-per-hour", "pricePerHour", parseMoney),
    ...given("shard", "shard", parseShard),
  };
}

async function printStatus({ flags, screen }: Invocation, folder: string): Promise<number> {
  const status = await readBatch(folder);
  if (flags.has("json")) {
    await screen.printJson(status);
    return 0;
  }
  const { id, shard, createdAt, total, done, passed, failed, refused, infra, started, causes, costUsd, pid } = status;
  const again = (verb: string, ...more: string[]): string =>
    showCommand(["glovebox", "batch", verb, ...more, status.folder]);
  const rows: [string, string][] = [
    ["batch", shard === undefined ? id : `${id}, shard ${shard}`],
    ["made", createdAt],
    [
      "driver",
      pid === undefined ? (done < total ? `none; to continue: ${again("resume")}` : "none") : `process ${pid}`,
    ],
    ["done", `${done} of ${total}`],
    ["passed", String(passed)],
    ["failed", String(failed)],
    ["refused", String(refused)],
    ["given up", infra === 0 ? "0" : `${infra}; once more: ${again("retry", "--only", "infra")}`],
    [pid === undefined ? "cut off" : "running", String(started)],
    ...(Object.keys(causes).length > 0 ? [["causes", causesText(causes)] as [string, string]] : []),
    ...(costUsd === undefined ? [] : [["cost", `$${costUsd.toFixed(2)}`] as [string, string]]),
  ];
  const { bold } = screen.style;
  await screen.print(formatTable(rows.map(([name, value]) => [bold(name), value])));
  const problems = status.problems
    .slice(0, 20)
    .map(({ taskId, outcome, code, message }) =>
      [taskId, outcome, code, message].map((cell) => toInertLine(cell).slice(0, 100)),
    );
  if (problems.length > 0) await screen.print(`\n${formatTable(problems)}`);
  if (status.problems.length > 20) await screen.print(`and ${status.problems.length - 20} more\n`);
  return 0;
}
