import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { SandboxError } from "../sandbox/errors.js";
import { writeFileAtomic } from "../sandbox/host.js";
import type { SandboxOptions } from "../sandbox/types.js";
import { type RedactOptions, redact } from "../util/redact.js";
import type { RunDirectory } from "./run-directory.js";
import type { Blueprint, HarnessOptions } from "./types.js";

/** What of the sandbox's options is written down; none of it can be a secret. */
type PlainSandboxOptions = Pick<SandboxOptions, "image" | "workspace" | "network" | "limits" | "mounts" | "isolation">;

/** What a run was told to do: `run.json`, enough to do it again. Names of secrets are in it, values never. */
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
  readonly sandbox: PlainSandboxOptions;
  readonly blueprint: {
    readonly name: string;
    readonly source?: string;
    readonly sha256: string;
    /** Absent when it holds functions: then `source` is read again. */
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
  const sha256 = createHash("sha256").update(text).digest("hex");
  return { name, ...(source && { source }), sha256, ...(!hasFunctions && { document: blueprint }) };
}

/** The options of a sandbox that may be written down. */
export function plainSandboxOptions(options: SandboxOptions = {}): PlainSandboxOptions {
  const { image, workspace, network, limits, mounts, isolation } = options;
  return {
    ...(image !== undefined && { image }),
    ...(workspace !== undefined && { workspace }),
    ...(network !== undefined && { network }),
    ...(limits !== undefined && { limits }),
    ...(mounts !== undefined && { mounts }),
    ...(isolation !== undefined && { isolation }),
  };
}

/** Writes `run.json`. */
export async function writeRunPlan(directory: RunDirectory, plan: RunPlan, hidden: RedactOptions): Promise<void> {
  await writeFileAtomic(directory.at("run.json"), `${redact(JSON.stringify(plan, undefined, 2), hidden)}\n`);
}

/** Reads `run.json`; one that cannot be read is `tampered`. */
export async function readRunPlan(directory: RunDirectory): Promise<RunPlan> {
  try {
    const plan = JSON.parse(await readFile(directory.at("run.json"), "utf8")) as RunPlan;
    if (plan.version === 1 && plan.runId === directory.runId && Array.isArray(plan.blueprint.document?.nodes ?? [])) {
      return plan;
    }
  } catch (error) {
    throw damaged(directory, error);
  }
  throw damaged(directory);
}

function damaged({ runId, path }: RunDirectory, cause?: unknown): SandboxError {
  return new SandboxError("tampered", `run.json of run "${runId}" cannot be read`, { cause, hint: `look at ${path}` });
}
