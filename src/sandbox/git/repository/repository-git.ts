import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import {
  assertOutside,
  findGit,
  gitError,
  type HostGitOptions,
  type HostGitResult,
  NO_CONFIG,
  NO_FETCH,
  runHostGit,
} from "../host.js";
import { checkWayTo } from "./repository-layout.js";
import { withRepositoryPipeWatch } from "./repository-pipes.js";
import { readRepositorySettings } from "./repository-settings.js";
import { openView } from "./repository-view.js";

/** How git runs on a source. */
export interface RepositoryGitOptions extends Omit<HostGitOptions, "cwd" | "gitDir"> {
  /** Whether the user's own configuration counts. Only for commands that run no filter. Default false. */
  withUserSettings?: boolean;
  /** Whether others may have written the working tree: then git may wait at a pipe in it. Default false. */
  isForeignTree?: boolean;
}

const MISSING = /unable to read|missing|bad object|not a valid object|could not (get|parse)|failed to unpack/;

/** The name in the reflogs of refs that Glovebox writes. */
const COMMITTER = { GIT_COMMITTER_NAME: "Glovebox", GIT_COMMITTER_EMAIL: "glovebox@localhost" };

/**
 * Runs git on the git directory of a source, and returns whatever came out.
 *
 * The source may come from anywhere. Git sees its objects and refs through a view, so nothing that its configuration, hooks or attributes
 * name is executed, and nothing is fetched. A view has no HEAD; use `resolveCommit` for that.
 */
export async function runRepositoryGit(
  args: readonly string[],
  gitDir: string,
  opts: RepositoryGitOptions = {},
): Promise<HostGitResult> {
  const view = await openView(gitDir);
  if (args[0] === "update-ref") for (const arg of args) if (arg.startsWith("refs/")) checkWayTo(gitDir, arg);
  // Git makes it where it is missing, but not through the link of a view.
  if (args.includes("--create-reflog")) await mkdir(join(gitDir, "logs"), { recursive: true });
  assertOutside(findGit().program, gitDir);
  const { withUserSettings = false, isForeignTree = false, ...rest } = opts;
  const env = { ...(withUserSettings ? NO_FETCH : NO_CONFIG), ...COMMITTER, ...opts.env };
  const place = { ...rest, cwd: opts.workTree ?? view, gitDir: view, env };
  const watched = { gitDir, ...(isForeignTree && { tree: opts.workTree }) };
  return await withRepositoryPipeWatch(watched, opts.signal, (signal) => runHostGit(args, { ...place, signal }));
}

/** As `runRepositoryGit`, but returns the output and throws a typed error when git fails. */
export async function repositoryGit(
  args: readonly string[],
  gitDir: string,
  opts: RepositoryGitOptions = {},
): Promise<string> {
  const result = await runRepositoryGit(args, gitDir, opts);
  if (result.exitCode === 0) return result.stdout;
  const error = gitError(args, result);
  if (!MISSING.test(result.stderr) || !(await readRepositorySettings(gitDir)).isPartial) throw error;
  throw new SandboxError("unsupported", error.message, {
    cause: error,
    hint: "This is a partial clone, and Glovebox fetches nothing from its remote. Make a full clone",
  });
}
