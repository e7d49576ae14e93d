import { guestBinary } from "../guest.js";

/** A host path that is visible inside. */
export interface JailBind {
  /** Of an overlay: what lies below, and is never changed. */
  source: string;
  /** Lay a private layer over `source`: a directory with `upper` and `work`. Implies `owned`. */
  overlay?: string;
  target: string;
  /** Default false. */
  writable?: boolean;
  /** The sandbox's user owns inside what the owner of `source` owns outside. Needed for private or writable trees. */
  owned?: boolean;
}

/** The user that a root manager gives to a sandbox: never the host's root. */
export interface JailUser {
  uid: number;
  gid: number;
}

/** Everything that a jail is. What is not named is not there. */
export interface JailSpec {
  binds: readonly JailBind[];
  symlinks: readonly { path: string; target: string }[];
  /** Private memory, in bytes. */
  tmpfs: readonly { path: string; size: number; mode: number }[];
  network: "none" | "full";
  /** Absent when the manager is not root: its own user is mapped. */
  user?: JailUser | undefined;
  /** A directory that exists on the host, behind which trees are collected; only the jail sees that. */
  stage: string;
  /** Control groups that are joined before anything starts. */
  cgroups: readonly string[];
  /** PID 1 inside. */
  program: readonly string[];
  cwd: string;
  /**
   * Keep two capabilities of the jail's own user namespace: CAP_SYS_ADMIN, for the guest to make namespaces with, and
   * CAP_SETPCAP, to take even the bounding set from what it starts.
   */
  privileged: boolean;
  env: Readonly<Record<string, string>>;
  /** Whether descriptor 4 is to be told when everything inside has ended. Default false. */
  tellsEnd?: boolean;
}

/** User and group of everything inside. */
export const INSIDE_ID = 1000;

/** One mount, and its place inside. */
type Step = { path: string } & ({ bind: JailBind } | { tmpfs: JailSpec["tmpfs"][number] });

/** From the root down, so that what protects a path inside a writable tree always comes after that tree. */
function stepsOf(spec: JailSpec): Step[] {
  const depth = ({ path }: Step): number => path.split("/").filter(Boolean).length;
  return [
    ...spec.binds.map((bind) => ({ path: bind.target, bind })),
    ...spec.tmpfs.map((tmpfs) => ({ path: tmpfs.path, tmpfs })),
  ].sort((a, b) => depth(a) - depth(b));
}

/** What tells our launcher to make the whole root. */
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

/** What tells bubblewrap to make the root itself. */
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
  // Only root can lend a tree to another user, and an overlay has to be mounted before bubblewrap starts. Elsewhere bubblewrap does it all: there
  // are systems that let no other program make namespaces.
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
  args.push("--chdir", spec.cwd, "--", ...spec.program);
  return { file: guestBinary(), args };
}
