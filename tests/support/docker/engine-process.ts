import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { describeEngine } from "../../../scripts/docker-engine.mjs";

/** Starts a program that listens on a port, in the network of the engine's machine, which is not that of the tests. Disposing it ends it. */
export async function listenInEngine(
  port: number,
  argv: readonly string[],
  env: Record<string, string> = {},
): Promise<ChildProcess & Disposable> {
  const folder = (process.env["DOCKER_HOST"] ?? "").replace(/^unix:\/\/|\/docker\.sock$/g, "");
  const daemon = describeEngine(folder).daemon();
  if (daemon === undefined) throw new Error("the engine has no process");
  const child = spawn("nsenter", ["-t", String(daemon), "-n", "--", ...argv], {
    stdio: "ignore",
    env: { ...process.env, ...env },
  });
  await once(child, "spawn");
  for (let i = 0; !isListening(child.pid, port); i++) {
    if (i > 1500) throw new Error(`${argv.join(" ")} does not listen on port ${port} after half a minute`);
    if (child.exitCode !== null) throw new Error(`${argv.join(" ")} ended with ${child.exitCode}`);
    await delay(20);
  }
  return Object.assign(child, { [Symbol.dispose]: () => void child.kill("SIGKILL") });
}

function isListening(pid: number | undefined, port: number): boolean {
  const text = ["tcp", "tcp6"].map((table) => readFileSync(`/proc/${pid}/net/${table}`, "utf8")).join("");
  return new RegExp(`:${port.toString(16).toUpperCase().padStart(4, "0")} [0-9A-F:]+ 0A `).test(text);
}
