import { rm } from "node:fs/promises";
import { resolve } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import type { ExecOptions } from "../../contracts/types.js";
import { makeDirectories } from "../util/make-directories.js";
import * as is from "../util/schema.js";
import { invalidArgument } from "../util/schema.js";
import { type OpenOptions, openSandbox } from "./open.js";
import { chooseBackend, loadBackend } from "./registry.js";
import type { BackendOptions, Sandbox } from "./types.js";

/** The result of an executor's command. Exit code 124: it was ended at its deadline. */
export interface CommandResult {
  stdout: string;
  stderr: string;
  exitCode: number;
}

/** Options of one command. */
export interface ExecuteOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** Milliseconds. Default 10 000 on the local backend, 300 000 elsewhere. */
  timeout?: number;
  /** Run as root. `unsupported` on the local backend. */
  sudo?: boolean;
}

/** A small interface to a sandbox for tools: commands and text files. The sandbox is opened on first use. */
export interface SandboxExecutor {
  /** Run a program with arguments; no shell sees them. */
  execute(command: string, args?: readonly string[], options?: ExecuteOptions): Promise<CommandResult>;
  writeFile(path: string, content: string | Uint8Array): Promise<void>;
  /** The file as UTF-8, or null if it does not exist. */
  readFile(path: string): Promise<string | null>;
  /** Sorted names; empty if the directory is empty or missing. */
  listFiles(path?: string): Promise<string[]>;
  /** Remove all files. The executor can be used again. */
  cleanup(): Promise<void>;
}

/** Options of `getSandboxExecutor`. */
export interface ExecutorOptions
  extends BackendOptions,
    Pick<OpenOptions, "backend" | "allow" | "isolation" | "network" | "env" | "image"> {
  /** Default deadline of a command, in milliseconds. Default 10 000 on the local backend, 300 000 elsewhere. */
  timeout?: number;
}

/** The directory of the local executor, relative to the current directory of the process. */
const DIRECTORY = ".sandbox";
const LOCAL_TIMEOUT = 10_000;
/** Longer, because packages may have to be fetched first. */
const REMOTE_TIMEOUT = 300_000;
const TIMED_OUT = 124;

/** What the local executor may start by default: common tools, and no shell. */
export const DEFAULT_ALLOWED_COMMANDS: readonly string[] = [
  ..."awk basename cat cmp comm cp cut date diff dirname du echo expr false file find git grep gunzip gzip head jq ln ls".split(
    " ",
  ),
  ..."md5sum mkdir mktemp mv node nl npm npx paste pip pip3 printf pwd python python3 realpath rm rmdir sed seq sha256sum".split(
    " ",
  ),
  ..."sleep sort stat tail tar tee test touch tr true uniq unzip wc which zip".split(" "),
];

/** Returns the executor for this environment: Vercel on Vercel, otherwise local in `.sandbox/` with an allowlist. */
export function getSandboxExecutor(opts: ExecutorOptions = {}): SandboxExecutor {
  const { timeout, backend = chooseBackend(process.env), ...rest } = opts;
  if (timeout !== undefined) is.check(timeout, is.timeout, "timeout");
  const baseDir = resolve(DIRECTORY);
  const worksHere = async (): Promise<boolean> => (await loadBackend(backend)).takesBaseDir === true;
  return createExecutor({
    timeout: async () => timeout ?? ((await worksHere()) ? LOCAL_TIMEOUT : REMOTE_TIMEOUT),
    open: async () => {
      if (!(await worksHere())) return openSandbox({ ...rest, backend });
      makeDirectories(baseDir);
      return openSandbox({ allow: DEFAULT_ALLOWED_COMMANDS, ...rest, backend, baseDir });
    },
    empty: async () => {
      if (!(await worksHere())) return;
      await rm(baseDir, { recursive: true, force: true });
      makeDirectories(baseDir);
    },
  });
}

/** How an executor opens its sandbox, and how its files are removed. */
export interface ExecutorSource {
  timeout(): Promise<number>;
  open(): Promise<Sandbox>;
  /** Removes the files. Called by `cleanup` when nothing runs any more. */
  empty(): Promise<void>;
}

const executeOptions: is.Schema<ExecuteOptions> = is.object({
  cwd: is.path,
  env: is.env,
  timeout: is.timeout,
  sudo: is.flag,
});

/** Makes an executor over sandboxes that are opened when they are needed. */
export function createExecutor(source: ExecutorSource): SandboxExecutor {
  let opened: Promise<Sandbox> | undefined;

  const sandbox = (): Promise<Sandbox> => {
    if (opened === undefined) {
      const opening = source.open();
      opened = opening;
      opening.catch(() => {
        if (opened === opening) opened = undefined;
      });
    }
    return opened;
  };

  return {
    async execute(command, args = [], options = {}) {
      is.check(options, executeOptions, "options");
      if (!Array.isArray(args)) throw invalidArgument("args", "an array of strings", args);
      const { cwd, env, timeout = await source.timeout(), sudo } = options;
      const box = await sandbox();
      if (sudo === true && !box.capabilities.user) {
        throw new SandboxError(
          "unsupported",
          `The ${box.backend} backend can't run commands with sudo: nothing in it runs as root`,
          {
            backend: box.backend,
            operation: "execute",
          },
        );
      }
      const call: ExecOptions = { argv: [command, ...args], timeout };
      if (cwd !== undefined) call.cwd = cwd;
      if (env !== undefined) call.env = env;
      if (sudo === true) call.user = "root";
      const { stdout, stderr, exitCode, timedOut } = await box.exec(call);
      if (!timedOut) return { stdout, stderr, exitCode };
      const line = `${stderr === "" || stderr.endsWith("\n") ? "" : "\n"}command timed out after ${timeout} ms\n`;
      return { stdout, stderr: stderr + line, exitCode: TIMED_OUT };
    },
    writeFile: async (path, content) => (await sandbox()).writeFile(path, content),
    readFile: async (path) => (await sandbox()).readFile(path),
    async listFiles(path = ".") {
      try {
        return await (await sandbox()).listDirectory(path);
      } catch (error) {
        if (error instanceof SandboxError && error.code === "not_found") return [];
        throw error;
      }
    },
    async cleanup() {
      const used = opened;
      opened = undefined;
      await (await used?.catch(() => undefined))?.teardown();
      await source.empty();
    },
  };
}
