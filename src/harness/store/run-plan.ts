import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { SandboxError } from "../../../contracts/errors.js";
import { readIn } from "../../util/beneath.js";
import { type RedactOptions, redact } from "../../util/redact.js";
import { codeHashOf } from "../blueprint.js";
import type { InstallStep } from "../install.js";
import type { Blueprint, HarnessOptions, SecretReport } from "../types.js";
import type { WrittenOptions } from "./resumed-options.js";
import { type RunDirectory, writeBoth } from "./run-directory.js";

const FILE = "run.json";

/** What a run was asked to do: `run.json`, enough to do it again. Names of secrets are in it, values never. */
export interface RunPlan
  extends Pick<
    HarnessOptions,
    "ref" | "base" | "prWith" | "agent" | "model" | "inputs" | "env" | "limits" | "from" | "until" | "specPath"
  > {
  readonly version: 1;
  readonly runId: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly gloveboxVersion: string;
  readonly nodeVersion: string;
  readonly backend: string;
  /** As it was asked for. */
  readonly repo: string;
  /** What the sandbox is opened on. */
  readonly sandboxRepo: string;
  readonly gitDir?: string;
  readonly baseCommit?: string;
  readonly remoteUrl?: string;
  readonly branch: string;
  readonly intent: string;
  readonly push: boolean;
  readonly pushOn: NonNullable<HarnessOptions["pushOn"]>;
  readonly draft: boolean;
  readonly keep: NonNullable<HarnessOptions["keep"]>;
  readonly sandbox: WrittenOptions;
  /** How its secrets get to the commands. */
  readonly secrets?: readonly SecretReport[];
  /** What is installed before the first node. */
  readonly installs?: readonly InstallStep[];
  /** Paths of the working tree that are copied in. */
  readonly copies?: readonly string[];
  /** Options of the sandbox that are not written down, and that have to be given again: `env.NAME`, `<backend>.token`. */
  readonly again?: readonly string[];
  /** Names in `env` whose values are secrets, which have to be given again. */
  readonly envAgain?: readonly string[];
  readonly blueprint: {
    readonly name: string;
    readonly source?: string;
    readonly sha256: string;
    /** Absent when it has functions: then `source` is read again. */
    readonly document?: Blueprint;
  };
}

/** A blueprint as it is kept in `run.json`. */
export function keptBlueprint(blueprint: Blueprint): RunPlan["blueprint"] {
  let hasFunctions = false;
  const text = JSON.stringify(blueprint, (_, value: unknown) => {
    if (typeof value !== "function") return value;
    hasFunctions = true;
    return String(value);
  });
  const { name, source } = blueprint;
  const sha256 = createHash("sha256")
    .update(text)
    .update(codeHashOf(blueprint) ?? "")
    .digest("hex");
  return { name, ...(source && { source }), sha256, ...(!hasFunctions && { document: blueprint }) };
}

/** Writes `run.json`, and registers the plan among the private files of the run. */
export async function writeRunPlan(directory: RunDirectory, plan: RunPlan, hidden: RedactOptions): Promise<void> {
  const shown = JSON.parse(redact(JSON.stringify(plan), hidden)) as RunPlan;
  const differs = (a: unknown, b: unknown): boolean => JSON.stringify(a) !== JSON.stringify(b);
  const lost = Object.entries(plan.sandbox).filter(([name, value]) =>
    differs(value, shown.sandbox[name as keyof WrittenOptions]),
  );
  const again = [...(plan.again ?? []), ...lost.map(([name]) => name)];
  const hiddenEnv = Object.entries(plan.env ?? {}).filter(([name, value]) => shown.env?.[name] !== value);
  const envAgain = hiddenEnv.map(([name]) => name);
  const complete = { ...shown, ...(again.length > 0 && { again }), ...(envAgain.length > 0 && { envAgain }) };
  await writeBoth(directory, FILE, `${JSON.stringify(complete, undefined, 2)}\n`);
}

/** Reads the plan as it was registered; one that cannot be read is `tampered`. */
export async function readRunPlan(directory: RunDirectory): Promise<RunPlan> {
  try {
    const plan = JSON.parse(await readFile(directory.state(FILE), "utf8")) as RunPlan;
    if (plan.version === 1 && plan.runId === directory.runId && Array.isArray(plan.blueprint.document?.nodes ?? [])) {
      return plan;
    }
  } catch (error) {
    throw damaged(directory, error);
  }
  throw damaged(directory);
}

/** Refuses to act on a run whose `run.json` no longer says what was registered: somebody has changed or planted it. */
export async function assertPlanUntouched(directory: RunDirectory): Promise<void> {
  using opened = directory.open();
  const shown = readIn(opened, FILE);
  const registered = await readFile(directory.state(FILE)).catch((error: unknown) => {
    throw damaged(directory, error);
  });
  if (shown.equals(registered)) return;
  throw new SandboxError(
    "tampered",
    `${directory.at(FILE)} is not the plan that run "${directory.runId}" started with`,
    {
      hint: "a run is resumed as it was started, or not at all; glovebox run starts a new one",
    },
  );
}

function damaged({ runId, path }: RunDirectory, cause?: unknown): SandboxError {
  return new SandboxError("tampered", `run.json of run "${runId}" cannot be read`, { cause, hint: `look at ${path}` });
}
