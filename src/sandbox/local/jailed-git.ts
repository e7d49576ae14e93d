import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { SandboxError, toSandboxError } from "../errors.js";
import { ownerMark } from "../orphans.js";
import { findBwrap } from "./find-bwrap.js";
import { chooseStage, chooseUser } from "./identity.js";
import { type JailBind, jailCommand } from "./jail.js";
import type { RunJailedGit } from "./jailed-commit.js";
import { systemBinds } from "./system.js";

/** What a jailed git works on. */
export interface JailedGitPlaces {
  /** Host-private bare repository; the only thing that can be written, at /gd. */
  store: string;
  /** The tree that the inside wrote, at /wt. */
  tree: Pick<JailBind, "source" | "overlay">;
  /** Whether the tree is to be written: one of ours, for the files of a snapshot. Default false. */
  writable?: boolean;
  /** Whatever else the store refers to, read-only. */
  objects: readonly JailBind[];
  /** Ends a git that is running. */
  signal?: AbortSignal;
}

const MAX_OUTPUT = 64 << 20;
/** A program that the tree names can make git wait for ever. */
const TIMEOUT = 600_000;
const ENV: Readonly<Record<string, string>> = {
  PATH: "/usr/bin:/bin",
  HOME: "/nonexistent",
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_TERMINAL_PROMPT: "0",
  GIT_DIR: "/gd",
  GIT_WORK_TREE: "/wt",
  GIT_CEILING_DIRECTORIES: "/",
};
const LINKER_CACHE = "/etc/ld.so.cache";
const CONFIG = [
  "safe.directory=*",
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.bare=false",
  "gc.auto=0",
  "maintenance.auto=false",
];

/**
 * A git that sees a hostile tree read-only, has no network, no capability and no user of the host's, and can write nothing but
 * its store. Filters and the like that the tree names may run in there: they find nothing to harm.
 */
export function createJailedGit({ store, tree, writable = false, objects, signal }: JailedGitPlaces): RunJailedGit {
  const system = systemBinds();
  const binds: JailBind[] = [
    ...system.binds,
    ...(existsSync(LINKER_CACHE) ? [{ source: LINKER_CACHE, target: LINKER_CACHE }] : []),
    { source: store, target: "/gd", writable: true, owned: true },
    { source: tree.source, ...(tree.overlay && { overlay: tree.overlay }), target: "/wt", writable, owned: true },
    ...objects.map((bind) => ({ ...bind, owned: true })),
  ];
  return async (args, opts = {}) => {
    const { file, args: jail } = jailCommand(
      {
        binds,
        symlinks: system.symlinks,
        tmpfs: [{ path: "/tmp", size: 64 << 20, mode: 0o1777 }],
        network: "none",
        user: chooseUser(),
        stage: chooseStage(),
        cgroups: [],
        program: ["git", ...CONFIG.flatMap((setting) => ["-c", setting]), ...args],
        cwd: "/wt",
        privileged: false,
        env: { ...ENV, ...opts.env },
      },
      findBwrap(),
    );
    return await run(file, jail, opts.stdin, signal);
  };
}

function run(
  file: string,
  args: readonly string[],
  stdin: Uint8Array = new Uint8Array(),
  signal?: AbortSignal,
): Promise<Awaited<ReturnType<RunJailedGit>>> {
  return new Promise((resolve, reject) => {
    const ended = { killSignal: "SIGKILL", timeout: TIMEOUT, ...(signal && { signal }) } as const;
    const child = spawn(file, args, {
      stdio: "pipe",
      env: { PATH: "/usr/bin:/bin", ...ownerMark() },
      cwd: "/",
      ...ended,
    });
    const kept: Buffer[] = [];
    let length = 0;
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_OUTPUT) kept.push(chunk);
      else child.kill("SIGKILL");
    });
    child.stderr.on("data", (chunk: Buffer) => {
      if (stderr.length < 64 << 10) stderr += chunk.toString("utf8");
    });
    child.stdin.on("error", () => undefined); // git may end without reading all of it; that shows in its exit code
    child.stdin.end(stdin);
    child.on("error", (error) => {
      if (child.pid === undefined) reject(toSandboxError(error, { operation: "git" }));
    });
    child.on("close", (code) => {
      if (signal?.aborted === true) reject(new SandboxError("aborted", "Aborted while git ran"));
      if (length > MAX_OUTPUT) reject(new SandboxError("limit_exceeded", `git said more than ${MAX_OUTPUT} bytes`));
      else resolve({ exitCode: code ?? 137, stdout: Buffer.concat(kept), stderr });
    });
  });
}
