import { execFile } from "node:child_process";
import { toSandboxError } from "../../../../contracts/errors.js";
import { guestBinary } from "../../guest.js";
import { INSIDE_GIT } from "../repository.js";
import type { LiveTree, SandboxHead } from "./live-tree.js";
import { runInside } from "./run-inside.js";

/** Hooks and the like in the sandbox must not interfere. They could harm nothing but the sandbox. */
const ENV: Readonly<Record<string, string>> = {
  GIT_CONFIG_COUNT: "3",
  GIT_CONFIG_KEY_0: "core.hooksPath",
  GIT_CONFIG_VALUE_0: "/dev/null",
  GIT_CONFIG_KEY_1: "core.fsmonitor",
  GIT_CONFIG_VALUE_1: "false",
  GIT_CONFIG_KEY_2: "gc.auto",
  GIT_CONFIG_VALUE_2: "0",
};

/** Milliseconds for a script that reads no files. A pipe in the place of a ref would make git wait without end. */
const SHORT = 10_000;

/** An image without git doesn't need what these scripts do. */
const NO_GIT = "there is no git in the sandbox";
const NEEDS_GIT = `command -v git >/dev/null || { printf '${NO_GIT}' >&2; exit 1; }
for head in .git/HEAD ${INSIDE_GIT}/HEAD; do
  if [ -p "$head" ]; then printf 'HEAD is a pipe' >&2; exit 1; fi
done`;

/** `$1` is the commit, or empty for the one that is checked out; `$2` the branch, or empty. */
const SET_HEAD = `
set -e
${NEEDS_GIT}
if [ -n "$2" ]; then git symbolic-ref HEAD "refs/heads/$2"; fi
if [ -n "$1" ]; then
  if [ -n "$2" ]; then git update-ref "refs/heads/$2" "$1"; else git update-ref --no-deref HEAD "$1"; fi
fi
index=$(git rev-parse --git-path index)
rm -f -- "$index" "$index.lock"
git read-tree HEAD
git update-index -q --refresh >/dev/null || :
`;

/** Makes HEAD and the index of the sandbox git agree with files that were just replaced. */
export async function setSandboxHead(tree: LiveTree, head: SandboxHead | undefined): Promise<void> {
  if (tree.sandboxGit === undefined) return;
  const argv = ["/bin/sh", "-c", SET_HEAD, "git", head?.sha ?? "", head?.branch ?? ""];
  const set = async (): Promise<string | undefined> =>
    (await lend(tree, head?.sha, tree.base?.sha)) ??
    (await runInside(tree.driver, argv, { env: ENV, signal: tree.signal }));
  const failure = await set();
  if (failure === undefined) return;
  const again = (await tree.sandboxGit.rebuild(head)) ?? (failure === NO_GIT ? undefined : await set());
  if (failure === NO_GIT && again === undefined) return;
  tree.warn(
    again === undefined
      ? `The git directory of the sandbox was broken and has been replaced: ${failure}`
      : `The git directory of the sandbox is broken: ${again}`,
  );
}

/** `$1` is the branch. Not `checkout -b`, which reads every file. */
const SET_BRANCH = `
set -e
${NEEDS_GIT}
git update-ref "refs/heads/$1" HEAD
git symbolic-ref HEAD "refs/heads/$1"
`;

/** Starts a new branch in the sandbox git at what is checked out; index and files stay as they are. */
export async function setSandboxBranch(
  { driver, warn, signal }: Pick<LiveTree, "driver" | "warn"> & Partial<Pick<LiveTree, "signal">>,
  branch: string,
): Promise<void> {
  const argv = ["/bin/sh", "-c", SET_BRANCH, "git", branch];
  const failure = await runInside(driver, argv, { env: ENV, timeout: SHORT, signal });
  if (failure !== undefined && failure !== NO_GIT) warn(`The fork stays on the branch of its origin: ${failure}`);
}

/** `$1` is the commit that HEAD must still be at, `$2` the new one with the same files, `$3` the reason. */
const ADVANCE = `
set -e
${NEEDS_GIT}
git update-ref -m "$3" HEAD "$2" "$1"
git reset -q
`;

/** Moves HEAD of the sandbox git to a commit that was made of its files, unless the sandbox has committed something else meanwhile. */
export async function advanceSandboxHead(tree: LiveTree, from: string, to: string, reason: string): Promise<void> {
  if (tree.sandboxGit === undefined) return;
  const lent = await lend(tree, to, from);
  const argv = ["/bin/sh", "-c", ADVANCE, "git", from, to, reason];
  const failure = lent ?? (await runInside(tree.driver, argv, { env: ENV, signal: tree.signal }));
  if (failure === NO_GIT) await tree.sandboxGit.advance?.(from, to);
  else if (failure !== undefined)
    tree.warn(`The git directory of the sandbox does not have the commit ${to}: ${failure}`);
}

/** Gives the sandbox a commit; returns the reason if that failed. */
async function lend(tree: LiveTree, sha: string | undefined, known: string | undefined): Promise<string | undefined> {
  if (sha === undefined || known === undefined || sha === known) return undefined;
  try {
    await tree.sandboxGit?.lend?.(sha, known);
    return undefined;
  } catch (error) {
    return toSandboxError(error).message;
  }
}

/** The commit that is checked out in a sandbox git, if two files say so. Don't rely on it: the sandbox may have written anything there. */
export async function readSandboxHead(gitDir: string): Promise<string | undefined> {
  return await new Promise((resolve) => {
    execFile(guestBinary(), ["git-head", gitDir], { env: {} }, (error, stdout) => {
      const [, sha] = /^([0-9a-f]{40}|[0-9a-f]{64})\n$/.exec(stdout) ?? [];
      resolve(error === null ? sha : undefined);
    });
  });
}
