import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { namesOf, networkCommand, networkProgram } from "./network.js";
import type { ContainerValue } from "./values.js";

/** How one command of the fake engine ended. */
export interface Ran {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** What a container runs, and how. */
export interface Command {
  readonly argv: readonly string[];
  /** Where the engine keeps files of its own. */
  readonly root: string;
  /** Without it an engine runs a process of its own before the command, with the same environment. */
  readonly noInit: boolean;
  /** By port, where others reach it. */
  readonly sockets?: ReadonlyMap<number, string>;
}

/** The capabilities that an engine leaves to root in a container, as far as they matter here. */
const CAPABILITIES = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETUID", "CAP_SETGID"];
const ROOT = ["", "0", "root", "0:0"];
const INIT = "/dev/.init";
let lastHosts = 0;

/** Starts a command for real in a container's tree and in a network of its own, where names of services lead to them. */
export function startInTree(container: ContainerValue, tree: string, command: Command): ChildProcess {
  const { argv, root, noInit, sockets = new Map() } = command;
  if (!ROOT.includes(container.user)) throw new Error(`the stand-in has no user "${container.user}"`);
  const hosts = join(root, `hosts-${++lastHosts}`);
  const names = namesOf(container.bindings).map(([address, alias]) => `${address} ${alias}\n`);
  writeFileSync(hosts, `127.0.0.1 localhost\n${names.join("")}`);
  const env = [...container.env, ...container.secrets].flatMap(([name, value]) => ["--setenv", name, value]);
  const isolation = [
    ...["--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--unshare-uts"],
    ...["--die-with-parent", "--new-session", "--cap-drop", "ALL"],
    ...CAPABILITIES.flatMap((name) => ["--cap-add", name]),
    ...["--bind", tree, "/", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"],
    ...(noInit ? [] : ["--ro-bind", networkProgram(), INIT]),
    ...["--ro-bind", hosts, "/etc/hosts", "--clearenv", ...env, "--chdir", container.workdir || "/"],
  ];
  const [program = "", ...args] = networkCommand(container.bindings, sockets);
  const first = noInit ? [] : [INIT, "init"];
  return spawn(program, [...args, "bwrap", ...isolation, "--", ...first, ...argv], { stdio: ["pipe", "pipe", "pipe"] });
}

/** Runs a command to its end; whoever asked for it may be gone before, and it is ended then. */
export function runInTree(
  container: ContainerValue,
  tree: string,
  command: Command,
  { signal, stdin }: { signal: AbortSignal; stdin: string },
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = startInTree(container, tree, command);
    const ran: Ran = { exitCode: 0, stdout: "", stderr: "" };
    const cancel = (): void => {
      child.kill("SIGKILL");
    };
    signal.addEventListener("abort", cancel);
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(stdin);
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      ran.stdout += chunk;
    });
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      ran.stderr += chunk;
    });
    child.on("error", reject);
    child.on("close", (code) => {
      signal.removeEventListener("abort", cancel);
      if (signal.aborted) reject(new Error("context canceled"));
      else resolve({ ...ran, exitCode: code ?? 137 });
    });
    if (signal.aborted) cancel();
  });
}
