import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { hasCommand } from "../../scripts/system-parts.mjs";
import { start } from "./processes.mjs";

const source = fileURLToPath(new URL("floor.c", import.meta.url));

/**
 * The lower bound for any resident helper on this machine: one byte over a pipe to a small program that starts /bin/true and
 * answers with a byte. It confines nothing, and transfers no arguments, output or exit code.
 */
export async function openFloor(scratch) {
  const compiler = [process.env.CC, "cc", "gcc", "musl-gcc"].find(hasCommand);
  if (compiler === undefined) return { exec: undefined, close: () => undefined };
  const program = join(scratch, "floor");
  await start(compiler, ["-O2", "-o", program, source]);
  const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  const waiting = [];
  child.stdout.on("data", (bytes) => {
    for (const resolve of waiting.splice(0, bytes.length)) resolve();
  });
  return {
    exec: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        child.stdin.write("x");
      }),
    close: () => new Promise((resolve) => child.once("close", resolve) && child.stdin.end()),
  };
}
