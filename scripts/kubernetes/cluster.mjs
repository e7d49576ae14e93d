import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/**
 * Starts a cluster that ends, with all it made, when `stop` is called or this process ends in whatever way. `programs` is the folder of what was
 * built, `images` are archives of file systems by the name of the image that each becomes, `onLine` gets what goes on. Resolves once all nodes are ready, with what `cluster.json` says.
 */
export async function startCluster({ programs, nodes = 1, images = {}, onLine = () => {} }) {
  const keeper = spawn(process.execPath, [fileURLToPath(new URL("keep.mjs", import.meta.url))], {
    stdio: ["pipe", "pipe", "pipe"],
    // What interrupts this process must not interrupt the one that cleans up.
    detached: true,
  });
  const ended = new Promise((resolve) => keeper.once("close", resolve));
  const said = [];
  createInterface({ input: keeper.stderr }).on("line", (line) => {
    said.push(line);
    if (said.length > 30) said.shift();
    onLine(line);
  });
  // It sees the end of its input when this process has ended.
  keeper.stdin.on("error", () => {});
  keeper.stdin.write(`${JSON.stringify({ programs, nodes, images })}\n`);
  const ready = new Promise((resolve) => createInterface({ input: keeper.stdout }).once("line", resolve));
  const path = await Promise.race([ready, ended.then(() => undefined)]);
  if (path === undefined) throw new Error(`the cluster did not start: ${said.join("\n")}`);
  const stop = async () => {
    keeper.stdin.end();
    await ended;
  };
  return { ...JSON.parse(readFileSync(path, "utf8")), path, ended, keeper: keeper.pid, stop };
}
