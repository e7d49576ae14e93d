import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "../sandbox/errors.js";
import {
  complaintOf,
  hostGit,
  type PushTarget,
  parsePushUrl,
  privateSubdirectory,
  runHostGit,
  runRemoteGit,
  withAskpass,
  withLock,
} from "../sandbox/host.js";

/** A clone of ours of a remote repository, up to date. */
export interface Clone {
  /** A bare repository. */
  readonly path: string;
  readonly defaultBranch: string;
}

const BRANCHES = "+refs/heads/*:refs/remotes/origin/*";

/** Brings a remote repository here, or up to date, and gives the place; one copy serves every run. */
export async function openClone(url: string, token: string | undefined, signal?: AbortSignal): Promise<Clone> {
  const target = parsePushUrl(url);
  const name = createHash("sha256").update(target.url).digest("hex").slice(0, 24);
  const path = join(privateSubdirectory("clones"), name);
  return await withLock(`clone:${path}`, () => refresh(path, target, token ?? "", signal), {
    timeout: 600_000,
    signal,
  });
}

async function refresh(path: string, target: PushTarget, token: string, signal?: AbortSignal): Promise<Clone> {
  const store = { cwd: path, gitDir: path, signal };
  if ((await runHostGit(["rev-parse", "--git-dir"], store).catch(() => undefined))?.exitCode !== 0) {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await hostGit(["init", "--bare", "--quiet", path], { cwd: path, signal });
    await hostGit(["config", "remote.origin.url", target.url], store);
  }
  const head = await withAskpass(`${path}.askpass`, target, token, async (asking) => {
    const run = async (args: readonly string[]): Promise<string> => {
      const answer = await runRemoteGit(args, target, store, asking);
      if (answer.exitCode === 0) return answer.stdout;
      const reason = complaintOf(answer, token === "" ? [] : [token]);
      throw new SandboxError("unavailable", `${target.url} cannot be cloned: ${reason}`, {
        hint: token === "" ? "a private repository needs GITHUB_TOKEN" : "does the token in GITHUB_TOKEN reach it?",
      });
    };
    const listed = await run(["ls-remote", "--symref", "--", target.url, "HEAD"]);
    await run(["fetch", "--quiet", "--prune", "--force", "--no-write-fetch-head", "--", target.url, BRANCHES]);
    return /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(listed)?.[1];
  });
  if (head === undefined) {
    throw new SandboxError("invalid_argument", `Invalid repo "${target.url}" — it has no commit yet`, {
      hint: "push a first commit to it",
    });
  }
  await hostGit(["symbolic-ref", "refs/remotes/origin/HEAD", `refs/remotes/origin/${head}`], store);
  return { path, defaultBranch: head };
}
