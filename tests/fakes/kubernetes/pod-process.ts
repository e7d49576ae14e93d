import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";

const isRoot = process.getuid?.() === 0;
const SYSTEM = ["/usr", "/lib", "/lib64", "/bin", "/sbin"];
const ETC = ["/etc/alternatives", "/etc/ssl", "/etc/ld.so.cache"];
const KERNEL_SETTINGS = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq"];
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** What is kept of a container's output, for the reason of its end. */
const MOST_LOG = 4_096;
const UNPRIVILEGED = [
  "--clear-groups",
  "--no-new-privs",
  "--inh-caps=-all",
  "--ambient-caps=-all",
  "--bounding-set=-all",
];

/** The exit code for a program that is not in the container; nothing that runs here uses it. */
export const MISSING = 253;

/** A folder of this machine in a pod. */
export interface PodMount {
  readonly source: string;
  readonly target: string;
  readonly isReadOnly: boolean;
}

/** What a container is made of. */
export interface PodOrder {
  readonly folder: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly uid: number;
  readonly gid: number;
  readonly mounts: readonly PodMount[];
  /** Its `/etc/hosts`. */
  readonly hosts: string;
  /** Connects it to a network before it starts, by its first process. */
  connect(pid: number): void;
}

/** A container that runs. */
export interface RunningPod {
  /** 128+n after signal n; `log` is the last of what it wrote. */
  readonly ended: Promise<{ code: number; log: string }>;
  exec(argv: readonly string[]): { child: ChildProcessWithoutNullStreams };
  kill(): void;
}

/**
 * Starts a container: real processes with files, processes and, if wanted, a network of their own. Its image is this machine's own system, read
 * only, below a root that is empty.
 */
export async function startContainer(order: PodOrder): Promise<RunningPod> {
  const place = mkdtempSync(join(order.folder, "pod-"));
  for (const name of ["etc", "tmp"]) mkdirSync(join(place, name));
  chmodSync(join(place, "tmp"), 0o1777);
  const { uid, gid } = order;
  const users = new Map([
    [0, "root:x:0:0:root:/root:/bin/sh"],
    [uid, uid === 0 ? "root:x:0:0:root:/root:/bin/sh" : `user:x:${uid}:${gid}::/home/sandbox:/bin/sh`],
  ]);
  writeFileSync(join(place, "etc", "passwd"), `${[...users.values()].join("\n")}\n`);
  writeFileSync(join(place, "etc", "group"), `root:x:0:\n${gid === 0 ? "" : `user:x:${gid}:\n`}`);
  writeFileSync(join(place, "etc", "hosts"), order.hosts);
  if (isRoot) for (const { source } of order.mounts.filter((mount) => !mount.isReadOnly)) chownSync(source, uid, gid);
  const readOnly = [...SYSTEM, ...ETC].filter(existsSync).flatMap((path) => ["--ro-bind", path, path]);
  const args = [
    ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--as-pid-1", "--die-with-parent"],
    ...(isRoot ? [] : ["--unshare-user", "--uid", String(uid), "--gid", String(gid)]),
    ...["--bind", join(place, "etc"), "/etc", ...readOnly, "--bind", join(place, "tmp"), "/tmp"],
    ...["--proc", "/proc", "--dev", "/dev", "--dir", "/root", "--dir", "/run", "--dir", "/home"],
    // As every runtime does it.
    ...KERNEL_SETTINGS.filter(existsSync).flatMap((path) => ["--ro-bind", path, path]),
    ...["--perms", "1777", "--tmpfs", "/dev/shm"],
    ...parentsOf(order.mounts).flatMap((path) => ["--perms", "0755", "--dir", path]),
    ...order.mounts.flatMap(({ source, target, isReadOnly }) => [isReadOnly ? "--ro-bind" : "--bind", source, target]),
    ...[
      "--json-status-fd",
      "3",
      "--chdir",
      "/",
      "--",
      "/bin/sh",
      "-c",
      'echo up >&4; read -r go <&5; exec 3>&- 4>&- 5<&-; exec "$@"',
      "sh",
    ],
    ...asUser(uid, gid),
    ...order.argv,
  ];
  const env = { PATH, HOME: uid === 0 ? "/root" : "/", HOSTNAME: "pod", ...order.env };
  const child = spawn("bwrap", args, { env, stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe"] });
  let log = "";
  // A container may be killed while it starts.
  for (const stream of child.stdio) stream?.on("error", () => undefined);
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (text: Buffer) => {
      log = (log + text.toString("utf8")).slice(-MOST_LOG);
    });
  }
  const ended = once(child, "close").then(([code, signal]) => ({
    code: (code as number | null) ?? (signal === "SIGKILL" ? 137 : 143),
    log,
  }));
  const pid = await firstProcess(child);
  order.connect(pid);
  (child.stdio as readonly unknown[] as readonly Writable[])[5]?.end("go\n");
  return {
    ended,
    exec: (argv) => ({ child: enter(pid, order, env, argv) }),
    kill() {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    },
  };
}

/** The folders above the mounts, the outer ones first. bubblewrap would make them for root alone. */
function parentsOf(mounts: readonly PodMount[]): string[] {
  const above = (path: string): string[] => (path === "/" ? [] : [...above(dirname(path)), path]);
  return [...new Set(mounts.flatMap(({ target }) => above(dirname(target))))];
}

/** The first process of the container, once the container is whole. */
async function firstProcess(child: ChildProcess): Promise<number> {
  let status = "";
  (child.stdio[3] as Readable).on("data", (piece) => {
    status += String(piece);
  });
  const isUp = once(child.stdio[4] as Readable, "data").then(() => true);
  const isOver = once(child, "exit").then(() => false);
  if (!(await Promise.race([isUp, isOver]))) throw new Error(`bubblewrap did not start: ${status}`);
  return Number(/"child-pid"\s*:\s*(\d+)/.exec(status)?.[1]);
}

function enter(
  pid: number,
  { uid, gid }: PodOrder,
  env: NodeJS.ProcessEnv,
  argv: readonly string[],
): ChildProcessWithoutNullStreams {
  const namespaces = [
    "-t",
    String(pid),
    "-m",
    "-p",
    "-n",
    "-i",
    "-u",
    ...(isRoot ? [] : ["-U", "--preserve-credentials"]),
  ];
  const script = `cd /; command -v "$1" > /dev/null || exit ${MISSING}; shift; exec "$@"`;
  const command = ["--", "/bin/sh", "-c", script, "sh", argv[0] ?? "", ...asUser(uid, gid), ...argv];
  return spawn("/usr/bin/nsenter", [...namespaces, ...command], { env, stdio: ["pipe", "pipe", "pipe"] });
}

function asUser(uid: number, gid: number): string[] {
  return isRoot ? ["/usr/bin/setpriv", `--reuid=${uid}`, `--regid=${gid}`, ...UNPRIVILEGED] : [];
}
