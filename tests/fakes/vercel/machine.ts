import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { childrenOf } from "../../support/processes/descendants.js";

/** Root can give a command another user; everybody else has one user inside. */
const isRoot = process.getuid?.() === 0;
const USER = 1000;
const PASSWD = `root:x:0:0:root:/root:/bin/sh\nubuntu:x:${USER}:${USER}::/vercel:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n`;
const GROUP = `root:x:0:\nubuntu:x:${USER}:\nnogroup:x:65534:\n`;
const SYSTEM = ["/lib", "/lib64", "/bin", "/sbin"];
const ETC = ["/etc/alternatives", "/etc/ssl", "/etc/ld.so.cache", "/etc/pam.d", "/etc/security", "/etc/login.defs"];

/** A command that was started in a machine. */
export interface MachineCommand {
  readonly child: ChildProcess;
  /** 128+n after signal n. */
  readonly exit: Promise<number>;
  kill(signal: number): void;
}

/** How a command is started. */
export interface CommandOrder {
  command: string;
  args: readonly string[];
  cwd?: string | undefined;
  env?: Readonly<Record<string, string>> | undefined;
  sudo?: boolean | undefined;
}

/** Into how many parts a file comes apart on its way, and how long each of them takes. */
const PARTS = 3;
const PART_DELAY = 2;

/** Stands for a virtual machine: files of its own at the real paths, processes and network of its own. */
export class FakeMachine {
  readonly files: string;
  /** Whether what is started from now on has no network. */
  isCutOff: boolean;
  readonly #bwrap: ChildProcess;
  readonly #init: number;
  readonly #gates: Server[] = [];

  private constructor(files: string, bwrap: ChildProcess, init: number, isCutOff: boolean) {
    this.files = files;
    this.#bwrap = bwrap;
    this.#init = init;
    this.isCutOff = isCutOff;
  }

  /** A new set of files, empty or copied. */
  static makeFiles(from?: string): string {
    const files = mkdtempSync(join(tmpdir(), "glovebox-fake-vercel-"));
    if (from !== undefined) execFileSync("cp", ["-a", `${from}/.`, files]);
    for (const path of ["vercel", "vercel/sandbox", "tmp", "etc", "workspace"])
      mkdirSync(join(files, path), { recursive: true, mode: 0o755 });
    if (isRoot) for (const path of ["vercel", "vercel/sandbox", "tmp"]) chownSync(join(files, path), USER, USER);
    chmodSync(join(files, "tmp"), 0o1777);
    writeFileSync(join(files, "etc", "passwd"), PASSWD);
    writeFileSync(join(files, "etc", "group"), GROUP);
    return files;
  }

  static async start(files: string, isCutOff: boolean): Promise<FakeMachine> {
    const system = SYSTEM.filter(existsSync).flatMap((path) => ["--ro-bind", path, path]);
    const etc = ETC.filter(existsSync).flatMap((path) => ["--ro-bind", path, path]);
    const bind = (name: string): string[] => ["--bind", join(files, name), `/${name}`];
    const args = [
      ...["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--die-with-parent"],
      ...["--ro-bind", "/usr", "/usr"],
      ...(isRoot ? [] : ["--unshare-user", "--uid", String(USER), "--gid", String(USER)]),
      ...[...system, ...bind("etc"), ...etc, ...bind("vercel"), ...bind("workspace"), ...bind("tmp")],
      ...["--proc", "/proc", "--dev", "/dev", "--dir", "/root", "--dir", "/run", "--json-status-fd", "3"],
      ...["--", "sh", "-c", "echo up; exec sleep infinity"],
    ];
    const bwrap = spawn("bwrap", args, {
      stdio: ["ignore", "pipe", "inherit", "pipe"],
      env: { PATH: "/usr/bin:/bin" },
    });
    // Who enters before bubblewrap is done sees the host's files.
    await once(bwrap.stdout as Readable, "data");
    let status = "";
    for await (const piece of bwrap.stdio[3] as Readable) {
      status += String(piece);
      const pid = /"child-pid"\s*:\s*(\d+)/.exec(status)?.[1];
      if (pid !== undefined) return new FakeMachine(files, bwrap, Number(pid), isCutOff);
    }
    throw new Error("bubblewrap did not start");
  }

  run({ command, args, cwd = "/vercel/sandbox", env = {}, sudo = false }: CommandOrder): MachineCommand {
    const into = [
      "-t",
      String(this.#init),
      "-m",
      "-p",
      ...(this.isCutOff ? ["-n"] : []),
      "-i",
      "-u",
      ...(isRoot ? [] : ["-U", "--preserve-credentials"]),
    ];
    const user = isRoot ? ["-S", sudo ? "0" : String(USER), "-G", sudo ? "0" : String(USER)] : [];
    const script = 'cd "$1" || exit 1; shift; exec "$@"';
    const child = spawn(
      "/usr/bin/nsenter",
      [...into, ...user, "--", "/bin/sh", "-c", script, "sh", cwd, command, ...args],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
          HOME: sudo ? "/root" : "/vercel",
          USER: sudo ? "root" : "ubuntu",
          ...env,
        },
      },
    );
    const exit = once(child, "exit").then(
      ([code, signal]) => (code as number | null) ?? 128 + signalNumber(signal as string),
    );
    return {
      child,
      exit,
      kill: (signal) => {
        for (const pid of childrenOf(child.pid ?? 0)) process.kill(pid, signal);
      },
    };
  }

  /** Unpacks files as the service does: one after the other, each written in place and seen before it is whole. */
  async write(entries: readonly { name: string; mode: number; content: Buffer }[]): Promise<void> {
    for (const { name, mode, content } of entries) {
      const path = join(this.files, name);
      mkdirFor(dirname(path));
      const file = await open(path, "w", mode);
      try {
        if (isRoot) await file.chown(USER, USER);
        for (const part of inParts(content)) {
          await file.writeFile(part);
          await delay(PART_DELAY);
        }
      } finally {
        await file.close();
      }
    }
  }

  read(path: string): Buffer | undefined {
    const real = join(this.files, path);
    return existsSync(real) ? readFileSync(real) : undefined;
  }

  /** Opens a port of this host that leads to one of the machine. */
  async gate(port: number): Promise<string> {
    const program = `const s=require("net").connect(${port},"127.0.0.1");s.on("error",()=>process.exit(1));process.stdin.pipe(s);s.pipe(process.stdout)`;
    const server = createServer((socket) => {
      const into = this.isCutOff
        ? ["-t", String(this.#init), "-n", ...(isRoot ? [] : ["-U", "--preserve-credentials"])]
        : [];
      const child = spawn("/usr/bin/nsenter", [...into, "--", process.execPath, "-e", program], {
        stdio: ["pipe", "pipe", "ignore"],
      });
      socket.on("error", () => child.kill());
      // A server may answer and close before it has read anything. What it said still is on its way to the socket then, and
      // the end of it closes that.
      child.stdin?.on("error", () => undefined);
      socket.pipe(child.stdin as NodeJS.WritableStream);
      child.stdout?.pipe(socket);
    });
    this.#gates.push(server);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  }

  async stop(): Promise<void> {
    for (const gate of this.#gates) gate.close();
    if (this.#bwrap.exitCode !== null || this.#bwrap.signalCode !== null) return;
    const gone = once(this.#bwrap, "exit");
    try {
      process.kill(this.#init, "SIGKILL");
    } catch {
      this.#bwrap.kill("SIGKILL");
    }
    await gone;
  }
}

/** The pieces in which bytes arrive; the first is so short that not even a small header is whole. */
export function inParts(content: Buffer): Buffer[] {
  if (content.length < PARTS) return [content];
  const middle = Math.ceil(content.length / 2);
  const first = Math.min(5, middle - 1);
  return [content.subarray(0, first), content.subarray(first, middle), content.subarray(middle)];
}

/** Throws files away, whatever their bits. */
export function removeFiles(files: string): void {
  if (!isRoot) execFileSync("chmod", ["-R", "u+rwX", files]);
  rmSync(files, { recursive: true, force: true });
}

/** Copies files as they are. */
export function copyFiles(files: string): string {
  return FakeMachine.makeFiles(files);
}

function mkdirFor(path: string): void {
  if (existsSync(path)) return;
  mkdirFor(dirname(path));
  mkdirSync(path, { mode: 0o755 });
  if (isRoot) chownSync(path, USER, USER);
}

function signalNumber(name: string): number {
  const numbers: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 };
  return numbers[name] ?? 0;
}
