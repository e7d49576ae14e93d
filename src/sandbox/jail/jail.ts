import { agentBinary } from "../agent/binary.js";

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
   * Keep two capabilities of the jail's own user namespace: CAP_SYS_ADMIN, for the agent to make namespaces with, and
   * CAP_SETPCAP, to take even the bounding set from what it starts.
   */
  privileged: boolean;
  env: Readonly<Record<string, string>>;
  /** Whether descriptor 4 is to be told when everything inside has ended. Default false. */
  tellsEnd?: boolean;
}

/** User and group of everything inside. */
export const INSIDE_ID = 1000;

interface Step {
  path: string;
  args: string[];
}

function depth(path: string): number {
  return path.split("/").filter(Boolean).length;
}

/**
 * The command that starts a jail: our launcher, then bubblewrap. Mounts are ordered from the root down, so that what
 * protects a path inside a writable tree always comes after that tree.
 */
export function jailCommand(spec: JailSpec, bwrap: string): { file: string; args: string[] } {
  const staged: string[] = [];
  let count = 0;
  const steps: Step[] = [];
  for (const { source, target, writable, owned, overlay } of spec.binds) {
    // Only root can lend a tree to another user; only an overlay has to be mounted before bubblewrap starts.
    const isStaged = spec.user !== undefined || overlay !== undefined;
    const shown = isStaged ? `${spec.stage}/${count++}` : source;
    if (overlay !== undefined) staged.push("--overlay", `${writable ? "v" : "r"}${source}`, overlay);
    else if (isStaged) staged.push("--tree", `${owned ? "o" : "p"}${source}`);
    steps.push({ path: target, args: [writable ? "--bind" : "--ro-bind", shown, target] });
  }
  for (const { path, size, mode } of spec.tmpfs) {
    steps.push({ path, args: ["--perms", mode.toString(8).padStart(4, "0"), "--size", String(size), "--tmpfs", path] });
  }
  steps.sort((a, b) => depth(a.path) - depth(b.path));
  const args = ["launch", ...(spec.tellsEnd === true ? ["--status"] : [])];
  for (const group of spec.cgroups) args.push("--cgroup", group);
  if (spec.user) args.push("--user", String(spec.user.uid), String(spec.user.gid));
  if (staged.length > 0) args.push("--stage", spec.stage, ...staged);
  args.push("--", bwrap, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try");
  if (spec.network === "none") args.push("--unshare-net");
  args.push("--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "glovebox");
  args.push("--uid", String(INSIDE_ID), "--gid", String(INSIDE_ID), "--cap-drop", "ALL");
  if (spec.privileged) args.push("--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP");
  if (spec.tellsEnd === true) args.push("--json-status-fd", "4");
  args.push("--clearenv");
  for (const [key, value] of Object.entries(spec.env)) args.push("--setenv", key, value);
  args.push("--proc", "/proc", "--dev", "/dev");
  for (const { path, target } of spec.symlinks) args.push("--symlink", target, path);
  for (const step of steps) args.push(...step.args);
  args.push("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", spec.cwd, "--", ...spec.program);
  return { file: agentBinary(), args };
}
