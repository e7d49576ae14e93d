import { spawn } from "node:child_process";
import { existsSync } from "node:fs";

/** A host path in a jail. */
export interface Bind {
  source: string;
  target: string;
  writable?: boolean;
}

/** What a jailed program did. */
export interface JailResult {
  exitCode: number;
  stdout: Uint8Array;
  stderr: string;
}

const SYSTEM = ["/usr", "/bin", "/lib", "/lib64"].filter(existsSync);

/** Runs a program that sees the system's programs, the given paths and nothing else. */
export function runInJail(
  argv: readonly string[],
  opts: { binds: readonly Bind[]; cwd: string; env?: Record<string, string>; stdin?: Uint8Array },
): Promise<JailResult> {
  const env = { PATH: "/usr/bin:/bin", HOME: "/nonexistent", LC_ALL: "C", ...opts.env };
  const args = [
    ...["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv", "--proc", "/proc"],
    ...["--dev", "/dev", "--tmpfs", "/tmp"],
    ...SYSTEM.flatMap((path) => ["--ro-bind", path, path]),
    ...opts.binds.flatMap(({ source, target, writable }) => [writable ? "--bind" : "--ro-bind", source, target]),
    ...Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value]),
    ...["--chdir", opts.cwd, "--", ...argv],
  ];
  return new Promise((resolve, reject) => {
    const child = spawn("bwrap", args, { env: { PATH: process.env["PATH"] } });
    const stdout: Buffer[] = [];
    let stderr = "";
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      stderr += chunk;
    });
    child.stdin.on("error", () => undefined); // who does not read its input may be gone before it is written
    child.stdin.end(opts.stdin ?? "");
    child.on("error", reject);
    child.on("close", (code) => resolve({ exitCode: code ?? 128, stdout: Buffer.concat(stdout), stderr }));
  });
}
