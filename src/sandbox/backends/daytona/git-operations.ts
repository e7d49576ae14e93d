import { randomBytes } from "node:crypto";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Changes, NetworkPolicy } from "../../../../contracts/types.js";
import { readSnapshotRecord, writeSnapshotRecord } from "../../../ledger.js";
import { assertBranchName } from "../../../util/git/branch-name.js";
import { isoTime } from "../../../util/iso-time.js";
import { redact } from "../../../util/redact.js";
import { assertServer, parseChanges, RAW_AND_PATCH } from "../../git.js";
import type { PushOptions } from "../../types.js";
import { GIT_USER } from "./bootstrap.js";
import type { DaytonaDriver, DaytonaOperations } from "./driver.js";
import { diagnose } from "./failure.js";
import { askDefaultBranch } from "./github-branch.js";
import { BACKEND, type Source } from "./options.js";
import { withRemoteAccess } from "./push-window.js";

const AUTHOR = "harness";
const EMAIL = "harness@local";

/** The repository of a sandbox. */
export interface ClonedRepository {
  readonly source: Source;
  /** The branch that commits go to; undefined is whichever is checked out. */
  readonly branch: string | undefined;
  /** The commit that the sandbox started from. */
  readonly base: string;
  readonly token: string | undefined;
  readonly network: NetworkPolicy;
}

/** The operations of a sandbox with a repository: a snapshot is a commit. */
export function gitOperations(driver: DaytonaDriver, repository: ClonedRepository): DaytonaOperations {
  let asked: Promise<string> | undefined;
  return {
    snapshot: () => takeSnapshot(driver, repository),
    restore: (id) => restoreSnapshot(driver, id),
    changes: () => listChanges(driver, repository.base),
    git: {
      pushBranch: (branch, token, more) => pushBranch(driver, repository, { branch, token, ...more }),
      defaultBranch: () => {
        asked ??= askDefaultBranch(repository.source, repository.token);
        // A failure is not cached.
        asked.catch(() => {
          asked = undefined;
        });
        return asked;
      },
    },
  };
}

async function takeSnapshot(driver: DaytonaDriver, { source, branch }: ClonedRepository): Promise<string> {
  const id = `snapshot-${randomBytes(6).toString("hex")}`;
  const commit = await commitAll(driver, branch, id);
  const createdAt = isoTime();
  await writeSnapshotRecord({
    version: 1,
    id,
    sandboxId: driver.id,
    backend: BACKEND,
    createdAt,
    repo: source.url,
    commit,
  });
  return id;
}

/** Commits everything to its branch; the commit is empty if nothing has changed. */
async function commitAll(driver: DaytonaDriver, branch: string | undefined, message: string): Promise<string> {
  const { remote, workDir } = driver;
  try {
    const status = await remote.git.status(workDir);
    assertOnBranch(status.currentBranch, branch);
    if ((status.fileStatus ?? []).length === 0) return await commitNothing(driver, message);
    await remote.git.add(workDir, ["."]);
    return (await remote.git.commit(workDir, message, AUTHOR, EMAIL)).sha;
  } catch (error) {
    throw await diagnose(remote, error, "a commit");
  }
}

/** Older daemons make no empty commits; git itself does. */
async function commitNothing(driver: DaytonaDriver, message: string): Promise<string> {
  const { remote, workDir } = driver;
  try {
    return (await remote.git.commit(workDir, message, AUTHOR, EMAIL, true)).sha;
  } catch {
    const who = ["-c", `user.name=${AUTHOR}`, "-c", `user.email=${EMAIL}`];
    await git(driver, ...who, "commit", "--quiet", "--no-verify", "--allow-empty", "-m", message);
    return (await git(driver, "rev-parse", "HEAD")).trim();
  }
}

/** A refused checkout may still have moved HEAD, so check it before writing. */
function assertOnBranch(current: string | undefined, wanted: string | undefined): void {
  if (wanted === undefined || current === wanted) return;
  throw new SandboxError("conflict", `The sandbox is on branch "${current ?? "none"}", not on "${wanted}"`, {
    retryable: false,
    hint: `git checkout ${wanted}`,
  });
}

async function restoreSnapshot(driver: DaytonaDriver, id: string): Promise<void> {
  const { commit, backend } = await readSnapshotRecord(id);
  const known = commit !== undefined && backend === BACKEND && (await has(driver, commit));
  if (!known) {
    throw new SandboxError("not_found", `The snapshot ${JSON.stringify(id)} is not in this sandbox`, {
      hint: "a snapshot of a repository is a commit; it only exists in its sandbox and the forks of it",
    });
  }
  await git(driver, "reset", "--quiet", "--hard", commit);
  await git(driver, "clean", "--quiet", "-ffd");
}

async function has(driver: DaytonaDriver, commit: string): Promise<boolean> {
  const { exitCode } = await driver.run(["git", "cat-file", "-e", `${commit}^{commit}`]);
  return exitCode === 0;
}

/** Compared with a separate index: that of the sandbox does not change. */
async function listChanges(driver: DaytonaDriver, base: string): Promise<Changes> {
  const index = `${driver.place.folder}/index-${randomBytes(6).toString("hex")}`;
  const env = { GIT_INDEX_FILE: index };
  try {
    await git(driver, env, "read-tree", base);
    await git(driver, env, "add", "--all");
    return parseChanges(await git(driver, env, "diff-index", "--cached", ...RAW_AND_PATCH, base, "--"));
  } finally {
    await driver.run(["rm", "-f", index]);
  }
}

/** Pushes committed and uncommitted changes. Every failure is a result. */
async function pushBranch(
  driver: DaytonaDriver,
  { branch: own, network, source }: ClonedRepository,
  { branch, token, message, server }: { branch: string; token: string } & PushOptions,
): Promise<{ pushed: boolean; error?: string }> {
  const { remote, workDir } = driver;
  assertServer(source.url, server);
  try {
    assertBranchName(branch);
    const status = await remote.git.status(workDir);
    assertOnBranch(status.currentBranch, branch);
    if ((status.fileStatus ?? []).length > 0) {
      await commitAll(driver, own ?? branch, message ?? `glovebox: ${branch}`);
      // The push takes whatever HEAD is on by then.
      assertOnBranch((await remote.git.status(workDir)).currentBranch, branch);
    }
    await withRemoteAccess(driver, network, source.url, () => remote.git.push(workDir, GIT_USER, token));
    return { pushed: true };
  } catch (error) {
    const failure = await diagnose(remote, error, "git push");
    return { pushed: false, error: redact(failure.message, { secrets: [token] }) };
  }
}

async function git(driver: DaytonaDriver, ...words: (string | Readonly<Record<string, string>>)[]): Promise<string> {
  const args = words.filter((word) => typeof word === "string");
  const env = words.find((word) => typeof word !== "string");
  const { exitCode, stdout, stderr } = await driver.run(["git", ...args], { ...env, GIT_TERMINAL_PROMPT: "0" });
  if (exitCode === 0) return stdout;
  throw new SandboxError(
    "internal",
    `git ${args.find((arg) => !arg.startsWith("-"))} failed in the sandbox: ${stderr.trim()}`,
  );
}
