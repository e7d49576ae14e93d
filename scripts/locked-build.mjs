import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/**
 * Runs `script` in a child process that ends with this one; of those that name the same lock, one at a time. `onProgress` gets each line of its
 * output. An exit code other than 0 is an error with the last words of the child, and that code as `exitCode`.
 */
export async function buildUnderLock(lock, [script, ...args], onProgress) {
  const builder = ["--pdeathsig", "KILL", "flock", "--no-fork", lock, process.execPath, script, ...args];
  const child = spawn("setpriv", builder, { stdio: ["ignore", "pipe", "pipe"] });
  createInterface({ input: child.stdout }).on("line", onProgress);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    said = (said + text).slice(-2_000);
  });
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (...end) => resolve(end));
  });
  if (code !== 0) throw Object.assign(new Error(said.trim() || `ended with ${signal ?? code}`), { exitCode: code });
}
