import { spawn } from "node:child_process";
import { statfsSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { SandboxError, type SandboxErrorCode, toSandboxError } from "../../../../contracts/errors.js";
import { ownerMark } from "../../../machine/orphans.js";
import { assertOutside, findGit } from "./find-git.js";

/** Where and how git runs on the host. */
export interface HostGitOptions {
  /** The directory that git runs in (`-C`). */
  cwd: string;
  /** A git directory of ours. Given by name, so that git does not search for one. */
  gitDir?: string;
  /** The index to use. Default: that of the git directory. */
  index?: string | undefined;
  workTree?: string;
  /** Settings to add to those that are always made. */
  config?: Readonly<Record<string, string>>;
  env?: Readonly<Record<string, string>>;
  /** A file for git's standard input. */
  input?: string;
  /** Text for git's standard input, one character per byte. */
  text?: string;
  /** Whether to return the output as one character per byte. Default: as UTF-8. */
  isBinary?: boolean;
  /** An open file that git and its children get as descriptor 3. */
  extraFile?: number;
  /** Bytes of output beyond which the call is `limit_exceeded`. Default 64 MiB. */
  maxOutput?: number;
  signal?: AbortSignal | undefined;
  /**
   * Whether git ends when this process is killed. Not for a git that locks a ref: even when it is terminated, it can leave the lock
   * behind. Such a git finishes, and the next process waits for it. Default false.
   */
  interruptible?: boolean;
}

/** Options to run git on a git directory of ours, without a search for one. */
export function inStore(gitDir: string): HostGitOptions {
  return { cwd: gitDir, gitDir };
}

/** Runs git in one git directory. */
export type RunGit = (args: readonly string[], opts?: Omit<HostGitOptions, "cwd" | "gitDir">) => Promise<HostGitResult>;

/** A function that runs git in a git directory of ours. */
export function gitIn(place: HostGitOptions): RunGit {
  return (args, opts = {}) => runHostGit(args, { ...place, ...opts });
}

/** What git answered. */
export interface HostGitResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** The signal that ended it, if one did. */
  signal?: NodeJS.Signals;
}

const PASSED_ON = ["HOME", "USER", "LOGNAME", "XDG_CONFIG_HOME", "TMPDIR", "SSH_AUTH_SOCK"];
const PASSED_ON_WINDOWS = ["SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "TEMP", "TMP"];
const MAX_OUTPUT = 64 * 1024 * 1024;
const ALWAYS: Readonly<Record<string, string>> = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  // Without it, a power loss can leave a ref as an empty file, which git takes for damage.
  "core.fsync": "reference",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "protocol.ext.allow": "never",
  "submodule.recurse": "false",
  "advice.detachedHead": "false",
};

/** No object is fetched or replaced. */
export const NO_FETCH: Readonly<Record<string, string>> = {
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_ALLOW_PROTOCOL: "none",
};

/** No configuration counts: not the user's, not the system's, not the environment's. */
export const NO_CONFIG: Readonly<Record<string, string>> = {
  HOME: "/nonexistent",
  XDG_CONFIG_HOME: "/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  ...NO_FETCH,
};

/**
 * Runs git on the host, on a git directory of ours or on none, and returns whatever came out.
 *
 * Git executes what the settings of a git directory say. For a source, which may come from anywhere, use `runRepositoryGit`. Only jailed
 * git may look at what a sandbox can write.
 */
export async function runHostGit(args: readonly string[], opts: HostGitOptions): Promise<HostGitResult> {
  const { program, path, launcher } = findGit();
  assertOutside(program, opts.workTree ?? opts.cwd);
  const settings = Object.entries({ ...ALWAYS, ...opts.config }).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
  const place = [
    ...(opts.gitDir === undefined ? [] : [`--git-dir=${opts.gitDir}`]),
    ...(opts.workTree === undefined ? [] : [`--work-tree=${opts.workTree}`]),
  ];
  const env = {
    ...passedOn(),
    PATH: path,
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    ...ownerMark(),
    ...opts.env,
    // `gitError`, `explainGitFailure` and others read git's words, so they must be the English ones.
    LC_ALL: "C",
    ...(opts.index !== undefined && { GIT_INDEX_FILE: opts.index }),
  };
  const start = opts.interruptible === true ? launcher.ending : launcher.finishing;
  const command = [...start, program, "-C", opts.cwd, ...settings, ...place, ...args];
  return await collect(command, env, opts);
}

/** As `runHostGit`, but returns the output and throws a typed error when git fails. */
export async function hostGit(args: readonly string[], opts: HostGitOptions): Promise<string> {
  const result = await runHostGit(args, opts);
  if (result.exitCode === 0) return result.stdout;
  throw gitError(args, result);
}

/** Whether an error was caused by a git that was killed and so could not remove its locks. */
export function wasGitKilled(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    if (each instanceof GitFailure && each.signal !== undefined) return true;
  }
  return false;
}

/** What git said, and how it ended. */
class GitFailure extends Error {
  override readonly name = "GitFailure";
  readonly signal: NodeJS.Signals | undefined;

  constructor({ stderr, signal }: Pick<HostGitResult, "stderr" | "signal">) {
    super(stderr.slice(0, 4000));
    this.signal = signal;
  }
}

/** Turns git's complaint into a typed error. */
export function gitError(args: readonly string[], result: HostGitResult): SandboxError {
  const { exitCode, stderr } = result;
  const complaints = stderr.split("\n").filter((line) => /^(fatal|error):/.test(line));
  const reason =
    (complaints.at(-1) ?? stderr.trim().split("\n").at(-1) ?? "").slice(0, 1000) || `exit code ${exitCode}`;
  const dubious = /dubious ownership/.test(stderr);
  return new SandboxError(codeOf(stderr), `git ${args[0] ?? ""} failed: ${reason}`, {
    operation: "git",
    hint: dubious ? "Trust it yourself with: git config --global --add safe.directory <repository>" : undefined,
    cause: new GitFailure(result),
  });
}

function codeOf(stderr: string): SandboxErrorCode {
  if (/No space left on device|Disk quota exceeded/.test(stderr) || couldNotWrite(stderr)) return "no_space";
  if (/attempting to allocate \d+ over limit/.test(stderr)) return "limit_exceeded";
  if (/dubious ownership|Permission denied|Read-only file system/.test(stderr)) return "permission_denied";
  if (/not a git repository/.test(stderr)) return "invalid_argument";
  if (/already (checked out|used by worktree)|cannot lock ref|File exists/.test(stderr)) return "conflict";
  return "internal";
}

/** Whether git failed to write a file, without a reason, on a full disk. */
function couldNotWrite(stderr: string): boolean {
  const path = /couldn't write '(\/[^']+)'/.exec(stderr)?.[1];
  if (path === undefined) return false;
  try {
    const { bavail, ffree } = statfsSync(dirname(path));
    return bavail === 0 || ffree === 0;
  } catch {
    return false;
  }
}

function passedOn(): Record<string, string> {
  const names = process.platform === "win32" ? [...PASSED_ON, ...PASSED_ON_WINDOWS] : PASSED_ON;
  const present = names.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries(present.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

async function collect(
  [program = "", ...args]: string[],
  env: NodeJS.ProcessEnv,
  opts: HostGitOptions,
): Promise<HostGitResult> {
  const limit = opts.maxOutput ?? MAX_OUTPUT;
  const input = opts.input === undefined ? undefined : await open(opts.input);
  const answer = new Promise<HostGitResult>((resolve, reject) => {
    const abort = opts.signal === undefined ? {} : { signal: opts.signal };
    const extra = opts.extraFile === undefined ? [] : [opts.extraFile];
    const child = spawn(program, args, {
      env,
      stdio: [input?.fd ?? (opts.text === undefined ? "ignore" : "pipe"), "pipe", "pipe", ...extra],
      ...abort,
    });
    // A git that ends before it has read everything reports the reason itself.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(opts.text, "latin1");
    const kept: Record<"stdout" | "stderr", Buffer[]> = { stdout: [], stderr: [] };
    let size = 0;
    for (const name of ["stdout", "stderr"] as const) {
      child[name]?.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size <= limit) kept[name].push(chunk);
        else child.kill("SIGKILL");
      });
    }
    child.on("error", (error) => {
      if (child.pid === undefined) reject(toSandboxError(error, { operation: "git" }));
    });
    child.on("exit", () => {
      // A program that git started may keep these open.
      if (opts.signal?.aborted === true) for (const stream of [child.stdout, child.stderr]) stream?.destroy();
    });
    child.on("close", (code, signal) => {
      if (size > limit) reject(new SandboxError("limit_exceeded", `git wrote more than ${limit} bytes`));
      if (opts.signal?.aborted === true && code !== 0) {
        reject(new SandboxError("aborted", "Aborted while git ran", { cause: opts.signal.reason }));
      }
      const said = Buffer.concat(kept.stderr).toString();
      const stderr = signal === null ? said : `${said}\nended by ${signal}`;
      const stdout = Buffer.concat(kept.stdout).toString(opts.isBinary === true ? "latin1" : "utf8");
      resolve({ exitCode: code ?? 128, stdout, stderr, ...(signal && { signal }) });
    });
  });
  try {
    return await answer;
  } finally {
    await input?.close();
  }
}
