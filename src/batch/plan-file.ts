import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { SandboxError, toSandboxError } from "../../contracts/errors.js";
import { writeFileAtomic } from "../machine/atomic-file.js";
import { isoTime } from "../util/iso-time.js";
import { pathsOf } from "./batch-folder.js";
import type { BatchOptions } from "./types.js";

const VERSION = 1;

/** What is written down of a batch, so that it can be resumed. Secrets are not: they are named in `again`. */
export interface BatchPlan {
  readonly version: typeof VERSION;
  /** ISO 8601. */
  readonly writtenAt: string;
  readonly options: Omit<BatchOptions, "out" | "signal" | "onProgress" | "onStage" | "onNote" | "retry">;
  /** Options of the sandboxes that have to be given again. */
  readonly again: readonly string[];
}

/** Writes down how a batch is run. Returns the options that decide what its commands find and were others before. */
export async function writePlan(path: string, options: BatchOptions): Promise<string[]> {
  const { out: _, signal: _s, onProgress: _p, onStage: _t, onNote: _n, retry: _r, sandbox = {}, ...rest } = options;
  const { splitOptions } = await import("../harness/parts.js");
  const { written, again } = await splitOptions(sandbox);
  const { repo } = sandbox;
  const isHere = repo !== undefined && existsSync(repo);
  const kept = { ...written, ...(repo !== undefined && { repo: isHere ? resolve(repo) : repo }) };
  const plan: BatchPlan = { version: VERSION, writtenAt: isoTime(), options: { ...rest, sandbox: kept }, again };
  const text = JSON.stringify(plan);
  const before = await readPlanFile(path).catch((error: SandboxError) => {
    if (error.code === "unsupported") throw error;
    return undefined;
  });
  await writeFileAtomic(path, `${text}\n`);
  return before === undefined ? [] : changedOptions(before, JSON.parse(text) as BatchPlan);
}

function changedOptions(before: BatchPlan, now: BatchPlan): string[] {
  const named = ({ options: { backend, sandbox }, again }: BatchPlan): Map<string, unknown> =>
    // The values of those that are to be given again are not known here.
    new Map<string, unknown>([
      ["backend", backend],
      ...Object.entries(sandbox ?? {}),
      ...again.map((name) => [name, true] as const),
    ]);
  const [old, wanted] = [named(before), named(now)];
  const names = new Set([...old.keys(), ...wanted.keys()]);
  return [...names].filter((name) => !isDeepStrictEqual(old.get(name), wanted.get(name)));
}

/** The options that a batch was run with, to go on with it; `given` are those that were not written down. */
export async function readBatchOptions(
  out: string,
  given: Pick<BatchOptions, "sandbox"> = {},
): Promise<BatchPlan["options"] & { out: string }> {
  const { plan: path, folder } = pathsOf(out);
  const plan = await readPlanFile(path);
  const { splitOptions } = await import("../harness/parts.js");
  const offered = await splitOptions(given.sandbox ?? {});
  const missing = plan.again.filter((name) => !offered.again.includes(name));
  if (missing.length > 0) {
    throw new SandboxError(
      "invalid_argument",
      `The batch was started with options that are not written down: ${missing.map((name) => `sandbox.${name}`).join(", ")}`,
      { hint: "give them again; without them its sandboxes would be other ones" },
    );
  }
  return { ...plan.options, sandbox: { ...plan.options.sandbox, ...given.sandbox }, out: folder };
}

/** What is written down of a batch. */
export async function readPlanFile(path: string): Promise<BatchPlan> {
  let plan: BatchPlan;
  try {
    plan = JSON.parse(await readFile(path, "utf8")) as BatchPlan;
  } catch (error) {
    const { code, message } = toSandboxError(error);
    const why = code === "not_found" ? "" : `: ${message}`;
    throw new SandboxError(error instanceof SyntaxError ? "tampered" : code, `There is no batch in ${path}${why}`, {
      cause: error,
      hint: "name the directory of a batch; glovebox batch run makes it",
    });
  }
  if (plan?.version === VERSION && Array.isArray(plan.options?.tasks)) return plan;
  throw new SandboxError("unsupported", `${path} was not written by this version of Glovebox`, {
    hint: "go on with the Glovebox that wrote it",
  });
}
