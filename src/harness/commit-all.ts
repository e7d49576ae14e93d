import type { ExecOptions, ExecResult } from "../../contracts/types.js";
import type { Sandbox } from "../sandbox/types.js";

/** Who commits where nobody else is named. */
export const NOBODY = { name: "glovebox", email: "glovebox@localhost" } as const;

/**
 * Takes back the commits that a backend saves files by: their changes are uncommitted again. Such a commit
 * stays readable by its name.
 */
const UNSAVE = `while :; do
  case $(git log -1 --format='%ae %s') in
    "harness@local snapshot-"????????????) git reset --quiet --soft HEAD~1 ;;
    *) break ;;
  esac
done`;

/** No hook and no signature: the commit is the harness's. The first line says what happened, the rest is for people. */
const COMMIT = `set -e
${UNSAVE}
git add -A
if git diff --cached --quiet; then echo nothing; exit 0; fi
git -c core.hooksPath=/dev/null -c commit.gpgSign=false commit --quiet --no-verify --cleanup=verbatim -F -
git rev-parse HEAD
git --no-pager show --stat=100 --no-color --format= HEAD`;

/** Commits everything in the sandbox that is not committed; the first line of the output is the commit, or `nothing`. */
export async function commitAll(
  sandbox: Sandbox,
  message: string,
  { name, email }: { name: string; email: string },
  more: Partial<Pick<ExecOptions, "cwd" | "timeout" | "signal">> = {},
): Promise<ExecResult> {
  return await sandbox.exec({
    argv: ["/bin/sh", "-c", COMMIT],
    stdin: message,
    env: { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email },
    ...more,
  });
}

/** Takes a commit back that only saves files, so that it is not among those that are pushed. */
export async function dropSavingCommits(sandbox: Sandbox): Promise<void> {
  await sandbox.exec({ argv: ["/bin/sh", "-c", UNSAVE] });
}
