import type { Requirement } from "./requirement.js";
import { SPEC_2 } from "./spec-2.js";
import { THREATS } from "./threats.js";

const FOUNDATION_2 = "Foundation 2";

/** What the specs ask for: every acceptance criterion and every test that they name. And what is to be withstood. */
export const REQUIREMENTS: readonly Requirement[] = [
  ...THREATS,
  ...criteria("S1", "spec 1", [
    "`createLocalSandbox()` creates a git worktree from a valid repo",
    "`sandbox.workDir` is an absolute path inside the system temp directory",
    "`sandbox.exec()` runs commands with cwd inside the worktree",
    "`sandbox.exec()` rejects if cwd is outside workDir",
    "`sandbox.exec()` kills the process and returns `timedOut: true` on timeout",
    "`sandbox.uploadFiles()` writes files relative to workDir",
    "`sandbox.uploadFiles()` rejects path traversal attempts",
    "`sandbox.snapshot()` returns a non-empty string reference",
    "`sandbox.teardown()` removes the worktree directory",
    "`sandbox.teardown()` is idempotent",
    ['`createDaytonaSandbox()` throws "not yet implemented"', { superseded: "It is implemented: spec 4." }],
    "`exec()` starts the program with its arguments and never goes through a shell",
  ]),
  ...tests("S1", "spec 1", {
    "workdir-in-temp": "creates sandbox with workDir in temp directory",
    "exec-runs": "exec runs command in sandbox",
    "exec-cwd-outside": "exec rejects cwd outside sandbox",
    "exec-timeout": "exec handles timeout",
    "upload-writes": "uploadFiles writes files",
    "upload-traversal": "uploadFiles rejects path traversal",
    "teardown-idempotent": "teardown is idempotent",
    "daytona-stub": ["daytona stub throws", { superseded: "It is implemented: spec 4." }],
  }),

  ...SPEC_2,

  ...criteria("S3", "spec 3", [
    "Sandbox interface defined with complete API",
    "Local sandbox implementation working",
    "Path validation prevents directory traversal",
    "All file operations work correctly",
    "Command execution captures stdout/stderr",
    "Working directory can be changed",
    "All unit tests pass (including security tests)",
    "Integration tests pass",
    ["Test coverage >80% for sandbox package", { later: FOUNDATION_2 }],
    [
      "Dagger stub created for future implementation",
      {
        superseded: "There is no stub: the Dagger backend is a real one, held to the same kit as the others.",
      },
    ],
  ]),
  ...tests("S3", "spec 3", {
    exec: "TestLocalSandbox_Exec",
    "write-file": "TestLocalSandbox_WriteFile",
    "write-file-simple": "TestLocalSandbox_WriteFile: simple file",
    "write-file-nested": "TestLocalSandbox_WriteFile: nested path",
    "write-file-traversal": "TestLocalSandbox_WriteFile: path traversal attempt",
    "read-file": "TestLocalSandbox_ReadFile",
    "list-directory": "TestLocalSandbox_ListDirectory",
    "set-workdir": "TestLocalSandbox_SetWorkdir",
    "path-traversal": "TestLocalSandbox_PathTraversal",
    "symlink-escape": "TestLocalSandbox_SymlinkEscape",
    concurrent: "TestLocalSandbox_Concurrent",
    "npm-workflow": "TestSandbox_NPMWorkflow",
    "bench-write-file": ["BenchmarkLocalSandbox_WriteFile", { later: FOUNDATION_2 }],
    "bench-read-file": ["BenchmarkLocalSandbox_ReadFile", { later: FOUNDATION_2 }],
    "bench-exec": ["BenchmarkLocalSandbox_Exec", { later: FOUNDATION_2 }],
  }),

  ...criteria("S4", "spec 4", [
    "`createDaytonaSandbox()` creates a Daytona sandbox via the SDK",
    "`sandbox.workDir` is derived from the clone location (not hardcoded)",
    "`sandbox.exec()` runs commands inside the container with correct cwd and separate stdout and stderr",
    "`sandbox.exec()` rejects cwd outside workDir",
    "`sandbox.exec()` returns `timedOut: true` when the timeout is exceeded",
    "`sandbox.uploadFiles()` writes files relative to workDir, folders with 755",
    "`sandbox.uploadFiles()` rejects path traversal attempts",
    "`sandbox.snapshot()` commits with an explicit message, also an empty tree, and returns a non-empty string",
    "`sandbox.teardown()` deletes the Daytona sandbox",
    "`sandbox.teardown()` is idempotent",
    "Throws when `DAYTONA_API_KEY` is missing",
    "Private repos are cloned with GitHub token authentication via the SDK's `git.clone()`",
    "`shellQuote()` correctly escapes all special characters",
    "`shellQuote()` preserves empty string arguments",
    "`--push` triggers push and PR creation after blueprint completion",
    "Push failure returns a `PushResult` with the error and does not fail the run",
    "Output from exec is truncated to `maxOutput` bytes",
    "The sandbox is created as ephemeral (deleted when it stops)",
    "Local paths are rejected with a clear error",
    "A failure of clone or branch deletes the sandbox before the error leaves",
    "The CLI reads the GitHub token from the environment only; the API accepts `githubToken`",
    "`RunReport.pushResult` has a typed schema",
    "The base branch of a PR is the default branch that GitHub names",
    "Env key names are validated; injection attempts are rejected",
    "Clone uses the default branch, then creates the branch of the run locally",
  ]),
  only(
    "S4-STATE-no-token",
    "spec 4, outcome state model",
    "Token missing: not pushed, `GITHUB_TOKEN required for push`",
  ),
  only("S4-STATE-push-failed", "spec 4, outcome state model", "Push failed: not pushed, `git push failed: <reason>`"),
  only("S4-STATE-pr-failed", "spec 4, outcome state model", "Pushed, no URL, `PR creation failed: <reason>`"),
  only("S4-STATE-ok", "spec 4, outcome state model", "Pushed, the URL of the pull request, no error"),
  only("S4-FORMAT-title", "spec 4, PR format", "`[harness] {intent}`, at most 256 characters"),
  only("S4-FORMAT-body", "spec 4, PR format", "`Blueprint: …`, `Branch: …`, `Run: …`, a line each"),
  ...tests("S4", "spec 4", {
    "push-triggers": "push+PR: push triggers git push and PR creation",
    "push-failure": "push+PR: push failure does not fail the run",
    "push-no-token": "push+PR: missing GITHUB_TOKEN returns error, does not throw",
    "push-schema": "push+PR: pushResult has correct schema",
    "push-not-asked": "push+PR: without the push flag nothing is pushed",
    "quote-simple-args": "shellQuote: simple args",
    "quote-single-quotes": "shellQuote: single quotes in args",
    "quote-double-quotes": "shellQuote: double quotes in args",
    "quote-spaces": "shellQuote: spaces in args",
    "quote-backticks-dollars": "shellQuote: backticks and dollar signs",
    "quote-empty-string": "shellQuote: empty string arg",
    "quote-empty-argv": "shellQuote: empty argv throws",
    "repo-shorthand": "parseGitHubRepo: org/repo shorthand",
    "repo-https": "parseGitHubRepo: full HTTPS URL",
    "repo-https-git-suffix": "parseGitHubRepo: full HTTPS URL with .git suffix",
    "repo-other-host": "parseGitHubRepo: rejects non-GitHub host",
    "repo-bare-name": "parseGitHubRepo: rejects bare name (no slash)",
    "repo-local-path": "parseGitHubRepo: rejects local path",
  }),

  ...criteria("S5", "spec 5, verification", [
    "Local executor: all sandbox commands work unchanged",
    "Interface switch: with `VERCEL=1` the factory returns the Vercel executor",
    "Vercel executor: a task that executes Python code runs on Vercel",
    [
      "End to end: complete a task with code execution, codify a skill, retrieve it and run its code",
      { superseded: "Skills belong to the application that spec 5 was written for, not to a sandbox library." },
    ],
  ]),
  only("S5-NAME-paths", "spec 5, files to create", "The executor lives in `src/lib/sandbox/` and its tests below it", {
    superseded: "This package keeps it in `src/sandbox/executor.ts`, with its tests in `tests/`.",
  }),
  only(
    "S5-NAME-classes",
    "spec 5, implementation classes",
    "`LocalSandboxExecutor` and `VercelSandboxExecutor` are classes",
    {
      superseded: "One executor stands over any backend, so there is nothing left for a class per backend to do.",
    },
  ),
  ...tests("S5", "spec 5", {
    "local-execute-allowed": "LocalSandboxExecutor execute should execute allowed commands",
    "local-execute-disallowed": "LocalSandboxExecutor execute should reject disallowed commands",
    "local-execute-timeout": "LocalSandboxExecutor execute should handle command timeout",
    "local-execute-result": "LocalSandboxExecutor execute should return stdout, stderr, exitCode",
    "local-write-file": "LocalSandboxExecutor writeFile should write file to sandbox directory",
    "local-write-parents": "LocalSandboxExecutor writeFile should create parent directories",
    "local-read-file": "LocalSandboxExecutor readFile should read file from sandbox",
    "local-read-missing": "LocalSandboxExecutor readFile should return null for non-existent file",
    "local-list-files": "LocalSandboxExecutor listFiles should list files in sandbox",
    "local-list-empty": "LocalSandboxExecutor listFiles should return empty array when sandbox is empty",
    "local-cleanup-removes": "LocalSandboxExecutor cleanup should remove all files from sandbox",
    "local-cleanup-recreates": "LocalSandboxExecutor cleanup should recreate empty sandbox directory",
    "vercel-execute-python": "VercelSandboxExecutor execute should execute Python code",
    "vercel-execute-output": "VercelSandboxExecutor execute should return command output",
    "vercel-write-read": "VercelSandboxExecutor should write and read files in sandbox",
    "vercel-cleanup-stops": "VercelSandboxExecutor cleanup should stop the sandbox",
  }),
];

type Reason = Pick<Requirement, "superseded" | "later">;
type Entry = string | readonly [sentence: string, reason: Reason];

function only(id: string, source: string, sentence: string, reason: Reason = {}): Requirement {
  return { id, source, sentence, ...reason };
}

function criteria(prefix: string, source: string, entries: readonly Entry[]): Requirement[] {
  return entries.map((entry, index) => {
    const [sentence, reason] = typeof entry === "string" ? [entry] : entry;
    return only(`${prefix}-AC-${index + 1}`, `${source} AC-${index + 1}`, sentence, reason);
  });
}

function tests(prefix: string, source: string, entries: Readonly<Record<string, Entry>>): Requirement[] {
  return Object.entries(entries).map(([name, entry]) => {
    const [sentence, reason] = typeof entry === "string" ? [entry] : entry;
    return only(`${prefix}-TEST-${name}`, `${source}, tests`, sentence, reason);
  });
}
