import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ContainerValue } from "./dagger-values.js";

/** How one command of the fake engine ended. */
export interface Ran {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** The capabilities that an engine leaves to root in a container, as far as they matter here. */
const CAPABILITIES = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETUID", "CAP_SETGID"];
let lastHosts = 0;

/** Starts a command for real in a container's tree; the network is that of this machine, and names of services lead to it. */
export function startInTree(
  container: ContainerValue,
  tree: string,
  argv: readonly string[],
  root: string,
): ChildProcess {
  const hosts = join(root, `hosts-${++lastHosts}`);
  const names = [...container.bindings.keys()].map((alias) => `127.0.0.1 ${alias}\n`).join("");
  writeFileSync(hosts, `127.0.0.1 localhost\n${names}`);
  const env = [...container.env, ...container.secrets].flatMap(([name, value]) => ["--setenv", name, value]);
  const walls = [
    ...["--unshare-user", "--uid", "0", "--gid", "0", "--unshare-pid", "--unshare-ipc", "--unshare-uts"],
    ...[
      "--die-with-parent",
      "--new-session",
      "--cap-drop",
      "ALL",
      ...CAPABILITIES.flatMap((name) => ["--cap-add", name]),
    ],
    ...["--bind", tree, "/", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"],
    ...["--ro-bind", hosts, "/etc/hosts", "--clearenv", ...env, "--chdir", container.workdir || "/"],
  ];
  return spawn("bwrap", [...walls, "--", ...argv], { stdio: ["pipe", "pipe", "pipe"] });
}

/** Runs a command to its end; whoever asked for it may be gone before, and it is ended then. */
export function runInTree(
  container: ContainerValue,
  tree: string,
  argv: readonly string[],
  { root, signal, stdin = "" }: { root: string; signal: AbortSignal; stdin?: string },
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = startInTree(container, tree, argv, root);
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
