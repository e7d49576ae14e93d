import { realpathSync, statSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { SandboxError } from "../errors.js";
import { gitError, type HostGitOptions, hostGit, runHostGit } from "./host-git.js";
import { readPlainRef } from "./plain-ref.js";
import { repositoryState } from "./repository-state.js";

/** A repository of the user's. Every path is absolute and real. */
export interface Repository {
  /** The git directory that all its worktrees share. */
  readonly gitDir: string;
  readonly objects: string;
  /** Absent for a bare one. */
  readonly topLevel?: string;
  readonly objectFormat: "sha1" | "sha256";
  /** Of a clone in our cache: what it is a clone of. */
  readonly url?: string;
}

/** What git said of plain repositories, and by what: asked again it would say the same. */
const known = new Map<string, { state: string; repository: Repository }>();

/** Looks at a directory that is to be a repository: its top level, or the directory of a bare one. */
export async function findRepository(path: string): Promise<Repository> {
  const cwd = realDirectory(path);
  const state = repositoryState(cwd);
  const before = known.get(cwd);
  if (before !== undefined && before.state === state) return before.repository;
  // A bare one has no top level: then git fails, but only after it has told the rest.
  const query = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--show-object-format", "--show-toplevel"];
  // Without this git would also take a repository further up, which the caller did not name.
  const opts: HostGitOptions = { cwd, env: { GIT_CEILING_DIRECTORIES: dirname(cwd) } };
  const answer = await runHostGit(query, opts);
  const [shared = "", objectFormat, topLevel] = answer.stdout.trimEnd().split("\n");
  if (answer.exitCode !== 0 && !/must be run in a work tree/.test(answer.stderr)) {
    if (!/not a git repository/.test(answer.stderr)) throw gitError(query, answer);
    throw new SandboxError("invalid_argument", `Invalid repo "${path}" — not a git repository`, {
      hint: await enclosing(cwd),
    });
  }
  if (objectFormat !== "sha1" && objectFormat !== "sha256") {
    throw new SandboxError("unsupported", `Repository "${path}" has the unknown object format ${objectFormat ?? ""}`);
  }
  const gitDir = await realpath(shared);
  const objects = await realpath(join(gitDir, "objects"));
  const repository: Repository = { gitDir, objects, ...(topLevel && { topLevel }), objectFormat };
  if (state !== undefined && topLevel === cwd && gitDir === join(cwd, ".git")) known.set(cwd, { state, repository });
  return repository;
}

/** How to run git on a repository without any search for it. */
export function inRepository(gitDir: string): HostGitOptions {
  return { cwd: gitDir, gitDir };
}

/** The commit that a name stands for; undefined when there is none. */
export async function resolveCommit(gitDir: string, name: string): Promise<string | undefined> {
  const plain = await readPlainRef(gitDir, name);
  if (plain !== undefined) return plain;
  const query = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${name}^{commit}`];
  const answer = await runHostGit(query, inRepository(gitDir));
  return answer.exitCode === 0 ? answer.stdout.trim() : undefined;
}

function realDirectory(path: string): string {
  let real: string;
  try {
    real = realpathSync.native(resolve(path));
  } catch (cause) {
    throw new SandboxError("not_found", `Invalid repo "${path}" — no such directory`, { cause });
  }
  if (!statSync(real).isDirectory()) {
    throw new SandboxError("invalid_argument", `Invalid repo "${path}" — not a directory`);
  }
  return real;
}

async function enclosing(cwd: string): Promise<string> {
  const above = await hostGit(["rev-parse", "--show-toplevel"], { cwd }).catch(() => "");
  return above === "" ? "Make it one with: git init" : `The repository above it is ${above.trimEnd()}`;
}
