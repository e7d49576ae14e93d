import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findAlternates } from "./alternates.js";
import { copyIfThere, INSIDE_OBJECTS, readCheckoutSettings, writeGitDirectory } from "./git-directory.js";
import { hostGit } from "./host-git.js";
import type { JailBind } from "./jail.js";
import { inRepository, type Repository } from "./repository.js";
import type { Worktree } from "./worktree.js";

/** Where the inside finds its git directory. */
export const INSIDE_GIT = "/glovebox/git";

/** What `createPrivateGit` needs. */
export interface PrivateGit {
  repository: Repository;
  worktree: Worktree;
  /** The worktree's path as the inside sees it. */
  workDir: string;
  /** An absent or empty directory that is not visible inside. */
  dir: string;
}

/**
 * Makes a git directory for the inside of a sandbox, so that nothing of the user's repository has to be writable there,
 * and its configuration, which may hold tokens, is not even readable. Gives what has to be bound where.
 *
 * Once a sandbox has run, the directory is hostile: no git of the host's may ever look at it.
 */
export async function createPrivateGit({ repository, worktree, workDir, dir }: PrivateGit): Promise<JailBind[]> {
  const git = join(dir, "git");
  const alternates = await findAlternates(repository.objects);
  const head = `refs/heads/${worktree.branch}`;
  const config = {
    core: { bare: "false", logallrefupdates: "true", worktree: workDir, ...(await readCheckoutSettings(repository)) },
    user: { name: "Glovebox", email: "glovebox@localhost" },
    gc: { auto: "0" },
    maintenance: { auto: "false" },
  };
  await writeGitDirectory(git, { head, config, repository });
  await writeFile(join(git, "objects", "info", "alternates"), `${INSIDE_OBJECTS}\n`);
  await writeFile(join(git, "packed-refs"), await listRefs(repository));
  await mkdir(dirname(join(git, head)), { recursive: true });
  await writeFile(join(git, head), `${worktree.baseSha}\n`);
  await copyIfThere(join(worktree.gitDir, "index"), join(git, "index"));
  const gitFile = join(dir, "gitfile");
  await writeFile(gitFile, `gitdir: ${INSIDE_GIT}\n`, { mode: 0o644 });
  const shown = (source: string, target: string): JailBind => ({ source, target, writable: false, owned: true });
  return [
    { source: git, target: INSIDE_GIT, writable: true, owned: true },
    shown(repository.objects, INSIDE_OBJECTS),
    ...alternates.map((path) => shown(path, path)),
    shown(gitFile, join(workDir, ".git")),
  ];
}

/** The branches and tags of the source, in the form of a `packed-refs` file. */
async function listRefs(repository: Repository): Promise<string> {
  const format = "%(objectname)%00%(refname)%00%(*objectname)%00%(symref)";
  const query = ["for-each-ref", `--format=${format}`, "refs/heads", "refs/tags", "refs/remotes"];
  const answer = await hostGit(query, { ...inRepository(repository.gitDir), maxOutput: 256 * 1024 * 1024 });
  const lines = ["# pack-refs with: peeled fully-peeled sorted"];
  for (const line of answer.split("\n")) {
    const [sha, name, peeled, target] = line.split("\0");
    if (sha === undefined || name === undefined || target !== "") continue;
    lines.push(`${sha} ${name}`);
    if (peeled) lines.push(`^${peeled}`);
  }
  return `${lines.join("\n")}\n`;
}
