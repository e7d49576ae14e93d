import { existsSync } from "node:fs";
import { SandboxError } from "../../../../contracts/errors.js";
import { installLine } from "../../../machine/install-line.js";
import { startCommand } from "../../guest.js";
import {
  chooseStage,
  chooseUser,
  type JailBind,
  type RunningGuest,
  startJailedGuest,
  systemBinds,
} from "../../jail.js";
import { NO_CONFIG } from "../host.js";
import { finishJailed, type JailedGitResult } from "./finish-jailed.js";
import { watchTreeForPipe } from "./tree-pipes.js";

/** What a jailed git works on. */
export interface JailedGitPlaces {
  /** The jail store, at /gd: all that git can write. */
  store: string;
  /** The files of the sandbox, at /wt. */
  tree: Pick<JailBind, "source" | "overlay">;
  /** Whether git may write the tree: a directory of ours, for the files of a snapshot. Default false. */
  writable?: boolean;
  /** Whatever else the store needs, read-only. */
  objects: readonly JailBind[];
  /** Kills a running git. */
  signal?: AbortSignal;
  /** Milliseconds for one git. Default and maximum: ten minutes. */
  timeout?: number | undefined;
}

/**
 * Runs git in a jail: the store writable at `/gd` and its git directory, the sandbox's tree read-only at `/wt` and its
 * work tree, the source's objects read-only at `/glovebox/objects` (and its alternates at their own paths), no network,
 * no capabilities, nothing else of the host's.
 */
export type RunJailedGit = ((
  args: readonly string[],
  opts?: { stdin?: Uint8Array; env?: Readonly<Record<string, string>> },
) => Promise<JailedGitResult>) & {
  /** Makes the jail before it is needed. Its store must be there. */
  start?(): void;
  /** Closes the jail, where it outlives a call. */
  close?(): Promise<void>;
};

/** Files of the sandbox can make git wait without end. */
const TIMEOUT = 600_000;
const ENV: Readonly<Record<string, string>> = {
  ...NO_CONFIG,
  PATH: "/usr/bin:/bin",
  LC_ALL: "C",
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
 * A git that sees a hostile tree read-only, has no network, no capability and no user of the host, and can write nothing but its store.
 * Filters and the like that the tree names may run there: they find nothing to harm.
 *
 * One jail serves all calls, behind a guest of its own; the first call makes it, `close` ends it, and the next call makes another.
 */
export function createJailedGit(places: JailedGitPlaces): RunJailedGit {
  const { store, tree, writable = false, objects, signal, timeout = TIMEOUT } = places;
  const system = systemBinds();
  const binds: JailBind[] = [
    ...system.binds,
    ...(existsSync(LINKER_CACHE) ? [{ source: LINKER_CACHE, target: LINKER_CACHE }] : []),
    { source: store, target: "/gd", writable: true, owned: true },
    { source: tree.source, ...(tree.overlay && { overlay: tree.overlay }), target: "/wt", writable, owned: true },
    ...objects.map((bind) => ({ ...bind, owned: true })),
  ];
  let jail: Promise<RunningGuest> | undefined;
  const open = (): Promise<RunningGuest> =>
    startJail(
      {
        binds,
        symlinks: system.symlinks,
        tmpfs: [{ path: "/tmp", size: 64 << 20, mode: 0o1777 }],
        network: "none",
        user: chooseUser(),
        stage: chooseStage(),
        cgroups: [],
        cwd: "/wt",
      },
      signal,
    );
  const start = (): Promise<RunningGuest> => {
    jail ??= open();
    // Whoever uses it gets the error.
    jail.catch(() => undefined);
    return jail;
  };
  const run: RunJailedGit = async (args, opts = {}) => {
    const { channel } = await start();
    const argv = ["git", ...CONFIG.flatMap((setting) => ["-c", setting]), ...args];
    const stdin = opts.stdin === undefined ? "none" : "pipe";
    const bound = Math.min(timeout, TIMEOUT);
    const spec = { argv, cwd: "/wt", env: { ...ENV, ...opts.env }, stdin, timeout: bound } as const;
    const git = await startCommand(channel, spec, "");
    const awaitPipe = watchTreeForPipe(git, (argv) =>
      startCommand(channel, { argv, cwd: "/wt", env: ENV, stdin: "none", timeout: bound }, ""),
    );
    try {
      return await finishJailed(git, opts.stdin, signal);
    } finally {
      await awaitPipe();
    }
  };
  const close = async (): Promise<void> => {
    const closing = jail;
    jail = undefined;
    // A jail that failed to start needs no end; whoever used it got the error.
    const opened = await closing?.catch(() => undefined);
    await opened?.stop();
  };
  return Object.assign(run, { start: () => void start(), close });
}

/** Adds to the error what the jail is for: the sandboxes of most backends need none. */
async function startJail(...args: Parameters<typeof startJailedGuest>): Promise<RunningGuest> {
  try {
    return await startJailedGuest(...args);
  } catch (error) {
    if (!(error instanceof SandboxError) || error.code !== "no_isolation") throw error;
    const message = `git may read the files of a sandbox in a jail only, and no jail can be made: ${error.message}`;
    throw new SandboxError("no_isolation", message, {
      cause: error,
      hint: error.hint ?? installLine("bubblewrap"),
    });
  }
}
