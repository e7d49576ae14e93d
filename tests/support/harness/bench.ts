import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type HarnessOptions, type RunEvent, type RunReport, readEvents, runHarness } from "../../../src/harness.js";
import { type FakeGitHub, serveGitHub } from "../../fakes/github.js";
import { createRepository, createScratch, git, type Scratch } from "../scratch.js";

/** A repository with a remote on a GitHub of its own, and a place for runs. */
export interface HarnessBench extends AsyncDisposable {
  readonly scratch: Scratch;
  readonly repo: string;
  readonly github: FakeGitHub;
  /** An empty token is none. */
  run(options: Partial<HarnessOptions> & Pick<HarnessOptions, "blueprint">): Promise<RunReport>;
  directoryOf(runId: string): string;
  /** Where the private files of a run are. */
  stateOf(runId: string): string;
  events(runId: string): RunEvent[];
  /** A file of a run's directory; "" when it is not there. */
  file(runId: string, name: string): string;
  /** A private file of a run; "" when it is not there. */
  state(runId: string, name: string): string;
}

/** Makes a bench: a repository on `main`, its remote `acme/widgets`, whose default branch is `trunk`. */
export async function createHarnessBench(
  prepare: (repo: string) => void = () => undefined,
  isPublic = false,
): Promise<HarnessBench> {
  const scratch = createScratch();
  const repo = createRepository(join(scratch.path, "repo"));
  prepare(repo);
  mkdirSync(join(scratch.path, "remotes"));
  const github = await serveGitHub(join(scratch.path, "remotes"), undefined, isPublic);
  git(repo, "push", "--quiet", github.remote, "main:trunk");
  git(repo, "remote", "add", "origin", github.url);
  const before = { ...process.env };
  Object.assign(process.env, github.env);
  delete process.env["GITHUB_TOKEN"];
  const directoryOf = (runId: string): string => join(repo, ".glovebox", "runs", runId);
  const stateOf = (runId: string): string => join(scratch.home, "runs", runId);
  const read = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");
  return {
    scratch,
    repo,
    github,
    run: ({ githubToken = github.env.GITHUB_TOKEN, ...options }) =>
      runHarness({ repo, intent: "mend it", sandboxType: "local", ...(githubToken && { githubToken }), ...options }),
    directoryOf,
    stateOf,
    events: (runId) => readEvents(join(directoryOf(runId), "events.jsonl")),
    file: (runId, name) => read(join(directoryOf(runId), name)),
    state: (runId, name) => read(join(stateOf(runId), name)),
    async [Symbol.asyncDispose]() {
      for (const name of ["GITHUB_SERVER_URL", "GITHUB_API_URL", "GITHUB_TOKEN"]) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
      await github[Symbol.asyncDispose]();
      scratch.remove();
    },
  };
}

/** Writes a file into a repository and commits it. */
export function commitFile(repo: string, name: string, content: string): void {
  writeFileSync(join(repo, name), content);
  git(repo, "add", "-A");
  git(repo, "commit", "--quiet", "-m", name);
}
