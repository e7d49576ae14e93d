import type { GitRepo } from "@openai/agents-core/sandbox";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { agents, sandboxes } from "./load-agents.js";

/** Takes a repository, what to fetch, where to put it, and a part of it. Works for branches, tags and commits. */
const CLONE = `set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init -q "$work"
cd "$work"
git remote add origin "$1"
git fetch -q --depth 1 origin "$2"
git checkout -q --detach FETCH_HEAD
cd - >/dev/null
if [ -z "$4" ]; then mkdir -p "$3"; cp -R "$work/." "$3"; exit; fi
part=$(realpath -e -- "$work/$4") || exit 3
case "$part" in "$(realpath -e -- "$work")"/*) ;; *) exit 3 ;; esac
if [ -d "$part" ]; then mkdir -p "$3"; cp -R "$part/." "$3"; else mkdir -p "$(dirname "$3")"; cp -R "$part" "$3"; fi
`;
const NO_SUCH_PART = 3;

/** Clones a repository of a manifest inside the sandbox, so that its content is never seen by a program of the host. It needs git and the network there. */
export async function cloneRepository(sandbox: Sandbox, path: string, entry: GitRepo): Promise<void> {
  const { ref = "HEAD", subpath = "" } = entry;
  const repository = addressOf(entry);
  const args = ["-c", CLONE, "sh", repository, ref, path, subpath];
  const env = { GIT_TERMINAL_PROMPT: "0" };
  const { exitCode, stderr } = await sandbox.exec("/bin/sh", args, { cwd: sandbox.workDir, env });
  if (exitCode === 0) return;
  const details = { provider: "glovebox", repository, ref };
  if (exitCode === 127 && /git: (?:command )?not found/.test(stderr)) {
    throw new sandboxes.SandboxGitMissingInImageError("git_repo entries need git in the sandbox", details);
  }
  if (exitCode === NO_SUCH_PART) {
    throw new sandboxes.SandboxGitSubpathError(`git_repo subpath is not in the repository: ${subpath}`, details);
  }
  throw new sandboxes.SandboxGitCloneError(
    `Failed to materialize git_repo entry ${entry.repo}: ${stderr.trim()}. The sandbox must be allowed to reach it (sandbox.network).`,
    details,
  );
}

function addressOf({ host = "github.com", repo }: GitRepo): string {
  if (!repo) throw new agents.UserError("git_repo entries require a repo.");
  if (repo.startsWith("-")) throw new agents.UserError(`git_repo repo must not start with a dash: ${repo}`);
  return repo.includes("://") || repo.startsWith("git@") ? repo : `https://${host}/${repo}.git`;
}
