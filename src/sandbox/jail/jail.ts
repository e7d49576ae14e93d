import { guestBinary } from "../guest.js";

/** A host path that is visible in the jail. */
export interface JailBind {
  /** Of an overlay: the lower layer, which never changes. */
  source: string;
  /** A private layer on top of `source`: a directory with `upper` and `work`. Implies `owned`. */
  overlay?: string;
  target: string;
  /** Default false. */
  writable?: boolean;
  /** The sandbox's user owns in the jail what the owner of `source` owns on the host. Needed for private or writable trees. */
  owned?: boolean;
}

/** The user of a sandbox that root opens: never the host's root. */
export interface JailUser {
  uid: number;
  gid: number;
}

/** Everything in a jail. What is not listed does not exist there. */
export interface JailSpec {
  binds: readonly JailBind[];
  symlinks: readonly { path: string; target: string }[];
  /** Private memory, in bytes. */
  tmpfs: readonly { path: string; size: number; mode: number }[];
  network: "none" | "full";
  /** Absent when we are not root: our own user is mapped. */
  user?: JailUser | undefined;
  /** An existing directory of the host to collect the trees in; only the jail sees them there. */
  stage: string;
  /** Control groups to join before anything starts. */
  cgroups: readonly string[];
  /** A program that starts the launcher in a control group that only it can make, and its variables. It must execute what follows it. */
  through?: { command: readonly string[]; env: Readonly<Record<string, string>> } | undefined;
  /** How many processes and threads there may be in the jail at the same time. PID 1 sets it, because the kernel then counts only the jail's. */
  processes?: number | undefined;
  /** PID 1 of the jail. */
  program: readonly string[];
  cwd: string;
  /** Keep CAP_SYS_ADMIN in the jail's user namespace, to make namespaces, and CAP_SETPCAP, to drop the bounding set of what starts. */
  privileged: boolean;
  /** Commands are user 0 of the machine, as `user` is absent for root. The program finds the host's `/proc` at `OUTER_PROC`, and must hide it. Default false. */
  commandsAreRoot?: boolean;
  env: Readonly<Record<string, string>>;
  /** Whether to report on descriptor 4 when everything in the jail has ended. Default false. */
  tellsEnd?: boolean;
}

/** User and group of everything in a jail, as seen there. */
export const INSIDE_ID = 1000;

/** Where a jail whose commands are root has the host's `/proc`, until its program hides it. The guest has the same path. */
const OUTER_PROC = "/glovebox/proc";

/** One mount, and its path in the jail. */
type Step = { path: string } & ({ bind: JailBind } | { tmpfs: JailSpec["tmpfs"][number] });

/** From the root down, so that a mount that protects a path in a writable tree comes after that tree. */
function stepsOf(spec: JailSpec): Step[] {
  const depth = ({ path }: Step): number => path.split("/").filter(Boolean).length;
  // The place for it: a root that our launcher made is read-only for bubblewrap.
  const outerProc = spec.commandsAreRoot === true ? [{ path: OUTER_PROC, size: 4096, mode: 0o755 }] : [];
  return [
    ...spec.binds.map((bind) => ({ path: bind.target, bind })),
    ...[...spec.tmpfs, ...outerProc].map((tmpfs) => ({ path: tmpfs.path, tmpfs })),
  ].sort((a, b) => depth(a) - depth(b));
}

/** The arguments for our launcher to make the whole root. */
function stagedMounts(spec: JailSpec): string[] {
  const args = ["--build-root", spec.stage];
  for (const { path, target } of spec.symlinks) args.push("--link", target, path);
  for (const step of stepsOf(spec)) {
    if ("tmpfs" in step) args.push("--tmpfs", String(step.tmpfs.size), modeOf(step.tmpfs), step.path);
    else {
      const { source, overlay, writable, owned, target } = step.bind;
      const access = writable ? "w" : "r";
      if (overlay === undefined) args.push("--tree", `${owned ? "o" : ""}${access}`, source, target);
      else args.push("--overlay", access, source, overlay, target);
    }
  }
  return args;
}

/** The arguments for bubblewrap to make the root itself. */
function ownMounts(spec: JailSpec): string[] {
  const args = ["--proc", "/proc", "--dev", "/dev"];
  for (const { path, target } of spec.symlinks) args.push("--symlink", target, path);
  for (const step of stepsOf(spec)) {
    if ("bind" in step) args.push(step.bind.writable ? "--bind" : "--ro-bind", step.bind.source, step.path);
    else args.push("--perms", modeOf(step.tmpfs), "--size", String(step.tmpfs.size), "--tmpfs", step.path);
  }
  return [...args, "--remount-ro", "/dev", "--remount-ro", "/"];
}

function modeOf({ mode }: { mode: number }): string {
  return mode.toString(8).padStart(4, "0");
}

/** The command that starts a jail: our launcher, then bubblewrap. */
export function jailCommand(spec: JailSpec, bwrap: string): { file: string; args: string[] } {
  // Only root can map a tree to another user, and an overlay has to be mounted before bubblewrap starts. Otherwise bubblewrap does it all: some
  // systems let no other program make namespaces.
  const isStaged = spec.user !== undefined || spec.binds.some(({ overlay }) => overlay !== undefined);
  const args = ["launch", ...(spec.tellsEnd === true ? ["--status"] : [])];
  for (const group of spec.cgroups) args.push("--cgroup", group);
  if (spec.user) args.push("--user", String(spec.user.uid), String(spec.user.gid));
  if (isStaged) args.push(...stagedMounts(spec));
  args.push("--", bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try");
  if (spec.network === "none") args.push("--unshare-net");
  args.push("--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "glovebox");
  args.push("--uid", String(INSIDE_ID), "--gid", String(INSIDE_ID), "--cap-drop", "ALL");
  if (spec.privileged) args.push("--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP");
  if (spec.tellsEnd === true) args.push("--json-status-fd", "4");
  args.push("--clearenv");
  for (const [key, value] of Object.entries(spec.env)) args.push("--setenv", key, value);
  args.push(...(isStaged ? ["--dev-bind", `${spec.stage}/root`, "/", "--proc", "/proc"] : ownMounts(spec)));
  if (spec.commandsAreRoot === true) args.push("--bind", "/proc", OUTER_PROC);
  args.push("--chdir", spec.cwd, "--", ...spec.program);
  return { file: guestBinary(), args };
}
