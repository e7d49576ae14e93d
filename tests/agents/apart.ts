import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { HarnessOptions } from "../../src/harness.js";
import type { AgentBench, Gateway } from "./agent-bench.js";

/** A run in a process of its own. */
export interface RunApart {
  /** Ends it as a power loss would. */
  kill(): void;
  /** What it printed, once it has ended. */
  readonly ended: Promise<string>;
}

/** The guest is found from where the program is. */
const PROGRAM = fileURLToPath(new URL("../../dist/run-apart.mjs", import.meta.url));
let built: Promise<unknown> | undefined;

/** Starts a run in a process of its own, in which every name leads to this machine's loopback as well. */
export async function startApart(
  { harness, sandbox }: AgentBench,
  { network }: Gateway,
  options: Partial<HarnessOptions>,
): Promise<RunApart> {
  built ??= build({
    entryPoints: [fileURLToPath(new URL("./run-apart.ts", import.meta.url))],
    outfile: PROGRAM,
    bundle: true,
    ...{ platform: "node", format: "esm", target: "node20", logLevel: "error" },
    external: ["yaml", "@dagger.io/dagger", "@daytona/sdk", "@vercel/sandbox"],
  });
  await built;
  const wanted = { repo: harness.repo, intent: "try it", sandboxType: "local", sandbox, network, ...options };
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(wanted)], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString("utf8");
    });
  }
  return {
    kill: () => void child.kill("SIGKILL"),
    ended: new Promise((resolve) => child.once("close", () => resolve(output))),
  };
}

/** Removes the program that the runs were started with. */
export async function removeApart(): Promise<void> {
  await rm(PROGRAM, { force: true });
}
