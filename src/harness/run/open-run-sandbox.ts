import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxEvent } from "../../../contracts/types.js";
import { resolveCommit } from "../../sandbox/host.js";
import type { Sandbox } from "../../sandbox/types.js";
import { type OpenOptions, openSandbox } from "../../sandbox.js";
import { isoTime } from "../../util/iso-time.js";
import type { RunPlan } from "../store.js";
import { createBranchAt } from "../store.js";
import { copyPaths } from "./copy-paths.js";
import type { SessionOptions } from "./session-options.js";

/** What a kept sandbox was made with, and does not take again. */
const REMEMBERED: ReadonlySet<string> = new Set([
  ...[
    "image",
    "snapshot",
    "ttl",
    "workspace",
    "workDir",
    "paths",
    "network",
    "limits",
    "isolation",
    "mounts",
    "gitFilters",
    "gitAlternates",
  ],
]);

/** The sandbox of a session, and whether its branch was made for it beforehand. */
export interface RunSandbox {
  readonly sandbox: Sandbox;
  readonly madeBranch: boolean;
}

/** Opens what a session works in: the kept sandbox of the run, or a new one with the files that it starts with. */
export async function openRunSandbox(
  opts: SessionOptions,
  signal: AbortSignal,
  onEvent: (event: SandboxEvent) => void,
): Promise<RunSandbox> {
  const { plan, resume } = opts;
  const always = { backend: plan.backend, signal, onEvent, ...opts.sandboxOptions };
  if (resume?.sandboxId !== undefined) {
    // It remembers these.
    const isAsked = ([name]: [string, unknown]): boolean => !REMEMBERED.has(name);
    const rest: OpenOptions = Object.fromEntries(Object.entries(always).filter(isAsked));
    const sandbox = await openSandbox({ ...rest, id: resume.sandboxId, keep: true });
    return { sandbox: await withFiles(sandbox, resume), madeBranch: false };
  }
  const madeBranch = await makeBranch(plan);
  const options: OpenOptions = { ...always, repo: plan.sandboxRepo, branch: plan.branch };
  // Whether it is kept is decided at the end; only a sandbox opened with `keep` can be.
  if (plan.keep !== "never") options.keep = options.keep === "all" ? "all" : true;
  const sandbox = await withFiles(await openSandbox(options), resume);
  // A snapshot has them already.
  if (resume?.snapshotId === undefined) await withCopies(sandbox, plan, onEvent);
  return { sandbox, madeBranch };
}

/** Puts saved files into a sandbox that was just opened; one that cannot have them is closed. */
export async function withFiles(
  sandbox: Sandbox,
  files: { readonly snapshotId?: string; readonly patch?: string } = {},
): Promise<Sandbox> {
  try {
    if (files.snapshotId !== undefined) await sandbox.restore(files.snapshotId);
    else if (files.patch) await applyPatch(sandbox, files.patch);
    return sandbox;
  } catch (error) {
    await sandbox.teardown();
    throw error;
  }
}

/** Copies the paths in that were named; a sandbox that cannot have them is closed. */
async function withCopies(
  sandbox: Sandbox,
  { copies = [], repo }: RunPlan,
  onEvent: (event: SandboxEvent) => void,
): Promise<void> {
  const { id: sandboxId, backend } = sandbox;
  try {
    await copyPaths(sandbox, copies, repo, (message) => {
      onEvent({ type: "warning", sandboxId, backend, message, time: isoTime() });
    });
  } catch (error) {
    await sandbox.teardown();
    throw error;
  }
}

async function applyPatch(sandbox: Sandbox, patch: string): Promise<void> {
  const { exitCode, stderr } = await sandbox.exec({ argv: ["git", "apply", "--whitespace=nowarn"], stdin: patch });
  if (exitCode === 0) return;
  throw new SandboxError("conflict", `What was saved no longer applies to the repository: ${stderr.trim()}`, {
    retryable: false,
    hint: "start a new run; the patch is in the run's directory",
  });
}

/** A sandbox starts a new branch at HEAD; where the run starts elsewhere, the branch is made first. */
async function makeBranch({ gitDir, baseCommit, branch, sandboxRepo }: RunPlan): Promise<boolean> {
  if (gitDir === undefined || baseCommit === undefined || /^https?:/i.test(sandboxRepo)) return false;
  return (await resolveCommit(gitDir, "HEAD")) === baseCommit
    ? false
    : await createBranchAt(gitDir, branch, baseCommit);
}
