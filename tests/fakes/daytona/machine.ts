import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { Refusal } from "./reply.js";

/** The home of the user inside. */
export const HOME = "/home/daytona";
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** What is a sandbox's own, and the folder of it that holds it. */
const OWN = [
  [HOME, "home"],
  ["/workspace", "workspace"],
  ["/tmp", "tmp"],
  ["/run/daemon", "run"],
] as const;

/** The computer of one sandbox: folders of its own, and commands that see nothing else of the host but its programs. */
export class Machine {
  readonly root: string;
  /** Where the processes of this machine are. */
  readonly #children = new Set<ChildProcess>();
  isolatedNetwork = false;
  /** What an isolated one still reaches, as the lists of the service say it. */
  allowed: readonly string[] = [];

  constructor(copyOf?: Machine | string) {
    this.root = mkdtempSync(join(tmpdir(), "fake-daytona-"));
    for (const [, folder] of OWN) mkdirSync(join(this.root, folder));
    const source = copyOf instanceof Machine ? copyOf.root : copyOf;
    if (source === undefined) return;
    for (const folder of ["home", "tmp", "workspace"]) copy(join(source, folder), join(this.root, folder));
  }

  /** Whether the service lets this machine speak to a host. */
  reaches(host: string): boolean {
    return !this.isolatedNetwork || this.allowed.some((entry) => entry === host || entry === `${host}/32`);
  }

  /** Where a path inside is on the host. */
  hostPath(path: string): string {
    const full = posix.resolve(HOME, path);
    for (const [prefix, folder] of OWN) {
      if (full === prefix || full.startsWith(`${prefix}/`)) return join(this.root, folder, full.slice(prefix.length));
    }
    throw new Refusal(403, `permission denied: ${full}`, "FILE_ACCESS_DENIED");
  }

  /** Starts a program inside. All that it starts is gone with it. */
  start(argv: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
    const system = ["bin", "sbin", "lib", "lib64"].filter((name) => existsSync(`/${name}`));
    const args = [
      ...[
        "--die-with-parent",
        "--new-session",
        "--unshare-user",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--cap-drop",
        "ALL",
      ],
      ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", ...(this.isolatedNetwork ? ["--unshare-net"] : [])],
      ...["--ro-bind", "/usr", "/usr", ...system.flatMap((name) => ["--ro-bind", `/${name}`, `/${name}`])],
      ...["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev"],
      ...OWN.flatMap(([inside, folder]) => ["--bind", join(this.root, folder), inside]),
      ...[
        "--chdir",
        HOME,
        "--clearenv",
        "--setenv",
        "HOME",
        HOME,
        "--setenv",
        "PATH",
        PATH,
        "--setenv",
        "USER",
        "daytona",
      ],
      ...Object.entries(env).flatMap(([key, value]) => ["--setenv", key, value]),
      "--",
      ...argv,
    ];
    const child = spawn("bwrap", args, { stdio: "pipe", detached: true });
    this.#children.add(child);
    child.once("close", () => this.#children.delete(child));
    child.on("error", () => undefined);
    child.stdin?.on("error", () => undefined);
    return child;
  }

  /** Ends every process, as a stop does. */
  async halt(): Promise<void> {
    const gone = [...this.#children].map((child) => new Promise((resolve) => child.once("close", resolve)));
    for (const child of this.#children) child.kill("SIGKILL");
    await Promise.all(gone);
  }

  /** Is no more. */
  async remove(): Promise<void> {
    await this.halt();
    discard(this.root);
  }
}

/** Keeps what a machine has, for `new Machine(saved)`. */
export function saveMachine(machine: Machine): string {
  const saved = mkdtempSync(join(tmpdir(), "fake-daytona-"));
  for (const folder of ["home", "tmp", "workspace"]) {
    mkdirSync(join(saved, folder));
    copy(join(machine.root, folder), join(saved, folder));
  }
  return saved;
}

/** Takes a folder away, whatever the bits in it. */
export function discard(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    execFileSync("chmod", ["-R", "u+rwX", path], { stdio: "ignore" });
    rmSync(path, { recursive: true, force: true });
  }
}

function copy(from: string, to: string): void {
  execFileSync("cp", ["-a", `${from}/.`, to]);
}
