import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError, type SandboxErrorCode } from "../../../../contracts/errors.js";
import { isBranchName } from "../../../util/git/branch-name.js";
import { type HostGitOptions, type HostGitResult, hostGit, inStore, NO_CONFIG } from "../host.js";
import { complaintOf, runRemoteGit, shownUrl, withAskpass } from "../remote.js";
import { type Repository, removeStaleRefLock, withRepositoryLock } from "../repository.js";
import type { SourceUrl } from "./source-url.js";

/** The ref for HEAD of the remote. */
export const REMOTE_HEAD = "refs/glovebox/remote-head";

const REFSPECS = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*", `+HEAD:${REMOTE_HEAD}`];
const FETCH = [
  "fetch",
  "--quiet",
  "--prune",
  "--no-tags",
  "--force",
  "--no-write-fetch-head",
  "--no-recurse-submodules",
];

const REASONS: readonly [RegExp, SandboxErrorCode, string?][] = [
  [
    /Authentication failed|could not read (Username|Password)|prompts disabled|error: 40[13]|Permission denied \(|Host key/i,
    "unauthenticated",
    "give githubToken, or on the command line GLOVEBOX_TOKEN, GITHUB_TOKEN or GH_TOKEN; for ssh, a key that needs no passphrase and a known host",
  ],
  [
    /error: 30[1278]|redirect/i,
    "invalid_argument",
    "the repository has moved: name its new URL; redirects are not followed",
  ],
  [/not found|does not exist|does not appear to be a git repository|error: 404/i, "not_found"],
  [/dubious ownership|Permission denied/i, "permission_denied"],
  [/No space left|quota exceeded/i, "no_space"],
];

/**
 * Fetches everything that a remote has into a bare repository of ours. `make` makes that repository, if there is none yet, in the object
 * format of the remote. `scratch` is a directory for one use.
 */
export async function fetchAll(
  source: SourceUrl,
  dir: string,
  scratch: string,
  opts: { token?: string | undefined; signal?: AbortSignal | undefined },
  make?: (objectFormat: Repository["objectFormat"]) => Promise<void>,
): Promise<void> {
  const { token = "", signal } = opts;
  await asking(source, join(scratch, "askpass"), token, async (answers) => {
    const remote = async (args: string[], place: HostGitOptions): Promise<string> => {
      const answer = await runRemoteGit(args, source, { ...place, signal }, answers);
      if (answer.exitCode !== 0) throw remoteError(source, answer, token);
      return answer.stdout;
    };
    const said = await remote(["ls-remote", "--symref", "--", source.url, "HEAD"], { cwd: scratch, env: NO_CONFIG });
    const sha = /^([0-9a-f]+)\tHEAD$/m.exec(said)?.[1];
    if (sha === undefined) {
      throw new SandboxError("invalid_argument", `Invalid repo "${shownUrl(source.url)}" — it has no commit yet`);
    }
    await make?.(sha.length === 64 ? "sha256" : "sha1");
    if (make === undefined) await removeLeftLocks(dir);
    await remote([...FETCH, "--", source.url, ...REFSPECS], inStore(dir));
    const first = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(said)?.[1];
    const name = "refs/remotes/origin/HEAD";
    if (isBranchName(first)) {
      await hostGit(["symbolic-ref", name, `refs/remotes/origin/${first}`], inStore(dir));
      await hostGit(["symbolic-ref", "HEAD", `refs/heads/${first}`], inStore(dir));
    }
  });
}

async function asking<T>(
  { target }: SourceUrl,
  dir: string,
  token: string,
  use: (answers: Pick<HostGitOptions, "extraFile" | "env">) => Promise<T>,
): Promise<T> {
  return target === undefined ? await use({}) : await withAskpass(dir, target, token, use);
}

/** Removes the locks that a killed git left. Nobody else writes these refs, and we hold the lock of the clone. */
async function removeLeftLocks(dir: string): Promise<void> {
  for (const top of ["refs/remotes", "refs/tags"]) {
    for (const name of await readdir(join(dir, top), { recursive: true }).catch(() => [])) {
      if (name.endsWith(".lock")) await rm(join(dir, top, name), { force: true });
    }
  }
  await withRepositoryLock(dir, async () => {
    for (const name of ["packed-refs", "HEAD", REMOTE_HEAD]) await removeStaleRefLock(dir, name);
  });
}

function remoteError(source: SourceUrl, answer: HostGitResult, token: string): SandboxError {
  const said = complaintOf(answer, token);
  const [, code = "unavailable", hint] = REASONS.find(([pattern]) => pattern.test(said)) ?? [];
  return new SandboxError(code, `The repository ${shownUrl(source.url)} cannot be fetched: ${said}`, {
    operation: "clone",
    hint,
  });
}
