import { mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { repositoryGit, writeFileAtomic } from "../../sandbox/host.js";
import type { Sandbox } from "../../sandbox/types.js";
import { listSnapshots, type SnapshotInfo } from "../../sandbox.js";
import { countLines } from "../../util/git/patch-lines.js";
import type { ChangeSummary } from "../types.js";
import { readCheckpoints } from "./checkpoints.js";
import type { RunDirectory } from "./run-directory.js";
import { treeOfCommit } from "./source-repository.js";

/** The files as they were when a run ended. */
export interface EndState {
  readonly snapshotId: string;
  /** Absent where the snapshots are not in a repository of this machine. */
  readonly tree?: string;
}

const STATUSES: Readonly<Record<string, "added" | "deleted" | "renamed">> = {
  ...{ new: "added", deleted: "deleted", rename: "renamed" },
};
const MAX_PATCH = 256 * 1024 * 1024;

/** Writes down which snapshot has the files at the end of a run. */
export async function saveEndState(directory: RunDirectory, state: EndState): Promise<void> {
  await writeFileAtomic(directory.state("end.json"), `${JSON.stringify(state)}\n`);
}

/** Forgets the end of an earlier session. */
export async function forgetEndState(directory: RunDirectory): Promise<void> {
  await rm(directory.state("end.json"), { force: true });
}

/** Every snapshot that a run has. */
export async function snapshotsOf(directory: RunDirectory): Promise<Set<string>> {
  const ids = (await readCheckpoints(directory)).map(({ snapshotId }) => snapshotId);
  return new Set([...ids, (await readEndState(directory))?.snapshotId].filter((id) => id !== undefined));
}

/** The snapshot of the end of a run; undefined when there is none. */
export async function readEndState(directory: RunDirectory): Promise<EndState | undefined> {
  const text = await readFile(directory.state("end.json"), "utf8").catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as EndState);
}

/** Whether the files of a snapshot are a commit in a repository of this machine, where they can be compared. */
export async function isOnThisMachine(id: string): Promise<boolean> {
  return (await findSnapshot(id)).gitDir !== undefined;
}

/** Whether a snapshot is nothing but a commit in its sandbox, and gone with it. */
export async function livesInSandbox(id: string): Promise<boolean> {
  const { gitDir, commit } = await findSnapshot(id);
  return gitDir === undefined && commit !== undefined;
}

/** The tree of a snapshot that is a commit: in a repository of this machine, else in that of its sandbox. */
export async function treeOfSnapshot(id: string, sandbox: Sandbox): Promise<string | undefined> {
  const { gitDir, commit } = await findSnapshot(id);
  if (commit === undefined) return undefined;
  if (gitDir !== undefined) return await treeOfCommit(gitDir, commit);
  const { stdout } = await sandbox.exec({ argv: ["git", "rev-parse", "--verify", `${commit}^{tree}`] });
  return /^[0-9a-f]{40,64}\n$/.test(stdout) ? stdout.trim() : undefined;
}

async function findSnapshot(id: string): Promise<Partial<SnapshotInfo>> {
  return (await listSnapshots()).find((snapshot) => snapshot.id === id) ?? {};
}

/** The tree that a patch makes of a commit, found without touching the repository. */
export async function treeOfPatch(gitDir: string, base: string, patchPath: string): Promise<string> {
  const scratch = await mkdtemp(join(tmpdir(), "glovebox-tree-"));
  try {
    await mkdir(join(scratch, "objects"));
    const env = {
      GIT_INDEX_FILE: join(scratch, "index"),
      GIT_OBJECT_DIRECTORY: join(scratch, "objects"),
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(gitDir, "objects"),
    };
    await repositoryGit(["read-tree", base], gitDir, { env });
    if ((await stat(patchPath)).size > 0) {
      await repositoryGit(["apply", "--cached", "--whitespace=nowarn", "--", patchPath], gitDir, { env });
    }
    return (await repositoryGit(["write-tree"], gitDir, { env })).trim();
  } finally {
    await rm(scratch, { recursive: true });
  }
}

/** What a snapshot differs in from a commit, without any sandbox. */
export async function patchOfSnapshot(id: string, base: string): Promise<string | undefined> {
  const { gitDir, commit } = await findSnapshot(id);
  if (gitDir === undefined || commit === undefined) return undefined;
  const query = ["diff-tree", "-r", "-M", "--no-commit-id", "--no-ext-diff", "--no-textconv", "--no-color"];
  return await repositoryGit([...query, "--patch", "--binary", base, commit, "--"], gitDir, { maxOutput: MAX_PATCH });
}

/** How much a patch changes. */
export function summarize(patch: string, files: ChangeSummary["files"]): ChangeSummary {
  const lines = countLines(patch);
  const sum = (field: "added" | "removed"): number => lines.reduce((total, file) => total + file[field], 0);
  return { files, insertions: sum("added"), deletions: sum("removed"), patchPath: "changes.patch" };
}

/** The files that a patch names, where nobody has listed them. */
export function filesOfPatch(patch: string): ChangeSummary["files"] {
  return patch
    .split(/^(?=diff --git )/m)
    .filter((section) => section.startsWith("diff --git "))
    .map((section) => {
      const head = section.slice(0, section.indexOf("\n@@") + 1 || undefined);
      const path = /^diff --git "?a\/.*?"? "?b\/(.*?)"?$/m.exec(head)?.[1] ?? "";
      const [, word = ""] = /^(new|deleted|rename) (?:file|to)/m.exec(head) ?? [];
      return { path, status: STATUSES[word] ?? "modified" };
    });
}
