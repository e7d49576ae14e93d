import type { Capabilities } from "../../contracts/types.js";
import { ConformanceSkip, check, refuses, within } from "./assert.js";
import { conformanceCases } from "./cases.js";
import { answers, openContext } from "./context.js";
import { createSandboxPool } from "./pool.js";
import type {
  ConformanceCase,
  ConformanceHarness,
  ConformanceOptions,
  ConformanceReport,
  ConformanceResult,
  SandboxPool,
} from "./types.js";

const CASE_TIMEOUT = 120_000;
const capabilitiesOf = new WeakMap<ConformanceHarness, Promise<Capabilities>>();

/** Runs the cases against one backend and returns the result of each. Never throws for a failed case. */
export async function runConformance(
  harness: ConformanceHarness,
  opts: ConformanceOptions = {},
): Promise<ConformanceReport> {
  const results = new Map<string, ConformanceResult>();
  const selected = conformanceCases.filter(({ id }) => isSelected(id, opts.only));
  const note = (result: ConformanceResult): void => {
    results.set(result.id, result);
    opts.onResult?.(result);
  };
  for (const wrong of wrongNames(harness, opts)) note(wrong);

  const pool = createSandboxPool(harness);
  const run = (one: ConformanceCase) => runConformanceCase(one, harness, { ...opts, pool });
  const waiting = selected.filter(({ exclusive }) => exclusive !== true);
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) note(await run(next));
  };
  await Promise.all(Array.from({ length: Math.max(1, opts.concurrency ?? 1) }, worker));
  await pool.close();
  for (const alone of selected.filter(({ exclusive }) => exclusive === true)) {
    note(await run(alone));
  }
  return toReport(harness.backend, [...results.values()]);
}

/** Runs one case; call it from a test of any framework. Without a pool the case opens its own sandbox. */
export async function runConformanceCase(
  conformanceCase: ConformanceCase,
  harness: ConformanceHarness,
  opts: { caseTimeout?: number; pool?: SandboxPool } = {},
): Promise<ConformanceResult> {
  const { id } = conformanceCase;
  const start = performance.now();
  const result = (status: ConformanceResult["status"], reason?: string): ConformanceResult => ({
    id,
    status,
    ...(reason === undefined ? {} : { reason }),
    durationMs: Math.round(performance.now() - start),
  });
  const limit = opts.caseTimeout ?? CASE_TIMEOUT;
  const skip = harness.skips?.[id];
  const pool = conformanceCase.exclusive === true ? undefined : opts.pool;
  let unmet: string | undefined;
  try {
    unmet = conformanceCase.needs?.(await probe(harness, pool), harness);
    await steps(conformanceCase, harness, unmet !== undefined, limit, pool);
  } catch (error) {
    if (error instanceof ConformanceSkip) return result("skipped", error.message);
    if (skip !== undefined && unmet === undefined) return result("skipped", skip);
    const message = error instanceof Error ? error.message : String(error);
    return result("failed", unmet === undefined ? message : `${unmet}, but: ${message}`);
  }
  if (skip !== undefined) {
    const why = unmet === undefined ? "the case passes" : `${unmet}, which skips it already`;
    return result("failed", `the skip no longer applies: ${why} (skipped for: ${skip})`);
  }
  return unmet === undefined ? result("passed") : result("skipped", unmet);
}

/** Counts results into a report. */
export function toReport(backend: string, results: readonly ConformanceResult[]): ConformanceReport {
  const count = (status: ConformanceResult["status"]): number => results.filter((r) => r.status === status).length;
  return { backend, passed: count("passed"), failed: count("failed"), skipped: count("skipped"), results };
}

async function steps(
  { options, closes, shares, run, refused }: ConformanceCase,
  harness: ConformanceHarness,
  isUnmet: boolean,
  limit: number,
  pool?: SandboxPool,
): Promise<void> {
  if (isUnmet && refused === undefined) return;
  const fits = isUnmet || shares === true;
  const context = await openContext(harness, isUnmet ? undefined : options, fits ? pool : undefined);
  try {
    await within(limit, "the case", isUnmet && refused ? refused(context) : run(context));
    if (isUnmet || closes !== true) await answers(context.sandbox);
    else
      await refuses("closed", "exec after the case closed its sandbox", () => context.sandbox.exec({ argv: ["true"] }));
  } catch (error) {
    await context.close(true).catch(() => undefined);
    throw error;
  }
  await context.close();
}

/** The capabilities of a default sandbox, read once per harness. */
function probe(harness: ConformanceHarness, pool?: SandboxPool): Promise<Capabilities> {
  let found = capabilitiesOf.get(harness);
  if (!found) {
    found = openContext(harness, undefined, pool).then(async (context) => {
      const { capabilities } = context.sandbox;
      await context.close();
      check(typeof capabilities === "object" && capabilities !== null, "the sandbox has no capabilities");
      return capabilities;
    });
    capabilitiesOf.set(harness, found);
  }
  return found;
}

function isSelected(id: string, only: readonly string[] | undefined): boolean {
  return only === undefined || only.some((name) => id === name || id.startsWith(`${name}.`));
}

/** Fails for a name in `skips` or `only` that matches no case: a typo must not hide one. */
function wrongNames(harness: ConformanceHarness, opts: ConformanceOptions): ConformanceResult[] {
  const ids = conformanceCases.map(({ id }) => id);
  const skips = Object.keys(harness.skips ?? {}).filter((name) => !ids.includes(name));
  const only = (opts.only ?? []).filter((name) => !ids.some((id) => isSelected(id, [name])));
  return [...skips.map((id) => [id, "skips"] as const), ...only.map((id) => [id, "only"] as const)].map(
    ([id, where]) => ({ id, status: "failed", reason: `${where} names a case that does not exist`, durationMs: 0 }),
  );
}
