import { SandboxError } from "../../../contracts/errors.js";
import { removeSandbox } from "../../sandbox.js";
import { defined } from "../../util/defined.js";
import { sandboxOptionsIn } from "../backend-facts.js";
import { needsOf, resolveSecrets } from "../needs.js";
import {
  assertNotRunning,
  assertPlanUntouched,
  findRunDirectory,
  keptBlueprint,
  type RunPlan,
  readReport,
  readRunPlan,
  resumedOptions,
} from "../store.js";
import type { Blueprint, HarnessOptions, RunReport } from "../types.js";
import { blueprintOf } from "./blueprint-of.js";
import { fetchedElsewhere } from "./decide-secrets.js";
import { findResumePoint } from "./resume-point.js";
import { runSession } from "./run-session.js";
import { type ResumePoint, readSpec, toSessionOptions } from "./session-options.js";

/** How a run is resumed. Everything else is as it was given the first time. */
export interface ResumeOptions
  extends Pick<
    HarnessOptions,
    "reporter" | "githubToken" | "daytona" | "secretSource" | "agents" | "limits" | "signal" | "trust"
  > {
  runId: string;
  /** Node to start with. Default: where it stopped. */
  from?: string;
  /** What the sandbox was opened with and is not written down: variables, credentials, clients. */
  sandbox?: HarnessOptions["sandbox"];
  /** Values of `env` that are secrets, and so are not written down. */
  env?: HarnessOptions["env"];
  /** Needed when the blueprint was given as code, not as a file. */
  blueprint?: HarnessOptions["blueprint"];
}

/** Resumes a run that failed, was stopped, or whose process is gone. */
export async function resumeRun(options: ResumeOptions): Promise<RunReport> {
  const startedAt = performance.now();
  const directory = await findRunDirectory(options.runId);
  await assertNotRunning(directory);
  await assertPlanUntouched(directory);
  const written = await readRunPlan(directory);
  const sandbox = await resumedOptions(options.runId, written.sandbox, written.again ?? [], sandboxOptionsIn(options));
  const limited = {
    ...written,
    ...(written.env && { env: envAgain(written, options) }),
    ...(options.limits && { limits: { ...written.limits, ...options.limits } }),
  };
  const blueprint = await blueprintAgain(limited, options);
  const report = await readReport(directory);
  const found = await findResumePoint(directory, blueprint, report, options.from);
  const { plan, resume } = beyondUntil(blueprint, limited, found, report?.finishedAt !== undefined);
  const needs = needsOf(blueprint, { ...plan, ...options, env: { ...sandbox.env, ...plan.env } });
  const secrets = resolveSecrets(needs, options.secretSource ?? process.env, fetchedElsewhere(sandbox.secrets));
  const spec = await readSpec(plan.specPath);
  const old = report?.sandbox?.id;
  // Its branch would still be in use there. It may be gone already.
  if (old !== undefined && old !== resume.sandboxId) await removeSandbox(old).catch(() => undefined);
  const session = toSessionOptions(options, {
    ...{ plan, directory, blueprint, startedAt, secrets, resume, warnings: [] },
    ...defined({ spec }),
    sandboxOptions: {
      ...sandbox,
      env: { ...blueprint.sandbox.env, ...plan.env, ...sandbox.env },
      ...defined({ githubToken: options.githubToken }),
    },
  });
  return await runSession(session);
}

/** A run that was to stop after a node and did continues after it; one that was killed then only lacks its end. */
function beyondUntil(
  { nodes }: Blueprint,
  plan: RunPlan,
  resume: ResumePoint,
  isOver: boolean,
): { plan: RunPlan; resume: ResumePoint } {
  const at = (id: string | undefined): number => nodes.findIndex((node) => node.id === id);
  if (plan.until === undefined || at(resume.startAt) <= at(plan.until)) return { plan, resume };
  const { until: _, ...onward } = plan;
  const { startAt: __, ...done } = resume;
  return isOver ? { plan: onward, resume } : { plan, resume: done };
}

function envAgain({ runId, env, envAgain = [] }: RunPlan, { env: given = {} }: ResumeOptions): Record<string, string> {
  const missing = envAgain.filter((name) => given[name] === undefined);
  if (missing.length === 0) {
    return { ...env, ...Object.fromEntries(envAgain.map((name) => [name, given[name] ?? ""])) };
  }
  throw new SandboxError("invalid_argument", `Run "${runId}" was started with secrets in env: ${missing.join(", ")}`, {
    hint: "resumeRun({ runId, env }) takes them again; they are not written down",
  });
}

async function blueprintAgain({ blueprint: kept, repo, runId }: RunPlan, options: ResumeOptions): Promise<Blueprint> {
  if (kept.document !== undefined) return kept.document;
  const wanted = options.blueprint ?? kept.source;
  if (wanted === undefined) {
    throw new SandboxError("invalid_argument", `The blueprint of run "${runId}" is code and was not kept`, {
      hint: "resumeRun({ runId, blueprint }) takes it again",
    });
  }
  const blueprint = await blueprintOf(wanted, { repo, trust: options.trust });
  if (keptBlueprint(blueprint).sha256 === kept.sha256) return blueprint;
  throw new SandboxError("conflict", `The blueprint ${kept.name} is not the one that run "${runId}" was started with`, {
    retryable: false,
    hint: "glovebox run starts a new run with it",
  });
}
